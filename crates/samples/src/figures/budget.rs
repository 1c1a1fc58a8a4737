//! Figures of captured stacks: how many threads of connections do what, on average, and what their CPU time goes to.

use mydyno_model::profile::TimeClass;

use super::{Figures, ratio};
use crate::figures::names::GROUPS_OF_FUNCTIONS;

pub fn add(to: &mut Figures<'_>) {
    let window_s = to.grown("profile.window_s").filter(|window_s| *window_s > 0.0);
    let threads = |to: &Figures<'_>, name: &str| ratio(to.grown(name), window_s);
    for (figure, counter) in
        [("budget.busy_threads", "profile.busy_s"), ("budget.idle_threads", "profile.idle_s")]
    {
        to.set(figure, threads(to, counter));
    }
    for class in TimeClass::ALL.into_iter().filter(|class| *class != TimeClass::ClientIdle) {
        let key = class.key();
        to.set(&format!("budget.{key}_threads"), threads(to, &format!("profile.class.{key}_s")));
    }
    let samples = to.grown("profile.cpu_samples").filter(|_| window_s.is_some());
    for group in GROUPS_OF_FUNCTIONS {
        let share = ratio(to.grown(&format!("profile.group.{group}")), samples);
        to.set(&format!("profile.{group}_share"), share);
    }
    let counted_s = to.grown("profile.judged_s");
    to.set("profile.closure", ratio(to.grown("profile.estimated_s"), counted_s));
    to.set("profile.lost_records", to.grown("profile.lost"));
    to.set("observe.profile_cpu_share", to.per_s("profile.own_cpu_s"));
}
