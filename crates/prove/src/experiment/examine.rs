//! Examines an experiment: levers, levels, load, responses, extents and claims must resolve.

use std::path::Path;
use std::sync::LazyLock;

use mydyno_judge::Claims;
use mydyno_levers::LeverSet;
use mydyno_model::experiment::LeverLevel;
use mydyno_model::experiment::definition::{Definition, LoadDefinition, Mode, Work};
use mydyno_model::units::{parse_duration, parse_share, parse_size};
use mydyno_settings::table;

use super::catalogue::Experiment;
use super::extent::times;
use super::load;
use super::mistake::{Mistake, place_of};
use super::probing::probing;
use crate::measure::{Load, MEASURES, Measure};
use crate::{budget, curve, factorial, side, survival};

/// Expected outcomes that may follow from the construction of an experiment, besides the identifiers of threats.
const OUTCOMES: [&str; 4] = ["supported", "refuted", "not_testable_here", "client-bound"];

/// The claims in the program, parsed once for all experiments: to parse them takes longer than to examine an experiment.
static CLAIMS: LazyLock<Result<Claims, String>> =
    LazyLock::new(|| Claims::embedded().map_err(|error| error.to_string()));

/// All mistakes of an experiment.
pub fn examine(experiment: &Experiment) -> Vec<Mistake> {
    let mut examiner = Examiner { experiment, mistakes: Vec::new(), set_up_s: Vec::new(), further_arms: 0 };
    examiner.words();
    examiner.claims();
    examiner.arms();
    examiner.curve();
    examiner.responses();
    examiner.extents();
    examiner.jobs();
    examiner.mistakes
}

struct Examiner<'a> {
    experiment: &'a Experiment,
    mistakes: Vec<Mistake>,
    /// Time in which a probe prepares a slice of each arm, in seconds; empty where servers are loaded.
    set_up_s: Vec<f64>,
    /// Arms of a curve beyond baseline, treatment and the baseline's second copy.
    further_arms: usize,
}

impl Examiner<'_> {
    fn definition(&self) -> &Definition {
        &self.experiment.definition
    }

    /// Records a mistake at the position of `value` behind the key with which `text` begins.
    fn wrong(&mut self, value: &str, text: impl Into<String>) {
        let text = text.into();
        let key = text.split(':').next().unwrap_or_default();
        let place = place_of(&self.experiment.text, key, value);
        let mistake = Mistake { file: self.experiment.file.clone(), place, text };
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }

    fn need(&mut self, fine: bool, value: &str, text: &str) {
        if !fine {
            self.wrong(value, text);
        }
    }

    fn words(&mut self) {
        let d = self.experiment.definition.clone();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        self.need(
            !d.name.is_empty() && d.name.chars().all(plain),
            &d.name,
            "name: lower case, digits and hyphens only",
        );
        let stem = Path::new(&self.experiment.file).file_stem().unwrap_or_default().to_string_lossy();
        if d.name != stem {
            self.wrong(&d.name, format!("name: the file is called {stem}.toml: both have to be the same"));
        }
        self.need(
            d.question.ends_with('?') && d.question.len() > 20,
            &d.question,
            "question: one sentence that ends with ?",
        );
        self.need(d.why.len() > 40, &d.why, "why: a sentence at least");
        self.need(
            d.execution.why.len() > 20,
            &d.execution.why,
            "execution.why: a sentence that gives the reason of the mode",
        );
        if let Some(outcome) = d.expects.as_ref().filter(|outcome| !OUTCOMES.contains(&outcome.as_str())) {
            let near = mydyno_settings::nearest(outcome, OUTCOMES);
            let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            self.wrong(outcome, format!("expects: it is one of {}{near}", OUTCOMES.join(", ")));
        }
        for published in &d.published {
            let fine =
                !published.figure.is_empty() && published.source.len() > 8 && published.conditions.len() > 8;
            self.need(fine, &published.source, "published: figure, source and conditions say something");
        }
    }

    fn claims(&mut self) {
        let ids = self.definition().claims.clone();
        if ids.is_empty() {
            return;
        }
        match &*CLAIMS {
            Err(error) => self.wrong("", error.clone()),
            Ok(claims) => {
                for id in ids {
                    if let Err(error) = claims.find(&id) {
                        self.wrong(&id, format!("claims: {error}"));
                    }
                }
            }
        }
    }

    /// Each lever exists and accepts its value, and the levers of an arm are compatible; the load resolves with each
    /// arm's options.
    fn arms(&mut self) {
        let d = self.experiment.definition.clone();
        let before = self.mistakes.len();
        let lists =
            [("set_up", &d.set_up), ("baseline", &d.baseline.levers), ("treatment", &d.treatment.levers)];
        for (list, texts) in lists {
            for text in texts {
                self.level(list, text);
            }
        }
        if self.mistakes.len() > before {
            return;
        }
        if !d.factors.is_empty() {
            return self.factors();
        }
        if d.classes.is_some() {
            return self.classes();
        }
        if d.baseline == d.treatment
            && d.jobs.iter().all(|job| job.only.is_none())
            && d.expects.as_deref() != Some("refuted")
        {
            self.wrong(
                "treatment",
                "baseline and treatment are the same; equal arms need expects = \"refuted\"",
            );
        }
        for (list, own) in [("baseline", &d.baseline.levers), ("treatment", &d.treatment.levers)] {
            let levels = [d.set_up.as_slice(), own].concat();
            match LeverSet::parse(&pairs(&levels)) {
                Err(problems) => {
                    for problem in problems {
                        self.wrong(list, format!("{list}: {problem}"));
                    }
                }
                Ok(lever_set) => {
                    self.load(&d.load, &lever_set, own);
                    if d.execution.mode == Mode::Duet {
                        self.wrong("duet", "execution.mode: a duet is the user's choice: --duet");
                    }
                    if d.execution.mode != Mode::Rows
                        && !lever_set.of_the_host().is_empty()
                        && d.execution.mode != Mode::InPlace
                    {
                        self.wrong(
                            "alternate",
                            "execution.mode: levers of the whole host need rows or in_place",
                        );
                    }
                }
            }
            if let (Mode::InPlace, Ok(lever_set)) = (d.execution.mode, LeverSet::parse(&pairs(own)))
                && !lever_set.is_in_place()
            {
                self.wrong(
                    "in_place",
                    format!(
                        "execution.mode: a lever of {list} needs a start of the server: use alternate or rows"
                    ),
                );
            }
        }
    }

    /// The levels of the curve fit the arms, each is a value of the lever, and no two servers are up at a time.
    fn curve(&mut self) {
        let d = self.experiment.definition.clone();
        let Some(of_file) = &d.curve else { return };
        let levels = |texts: &[String]| texts.iter().filter_map(|text| side::level(text)).collect::<Vec<_>>();
        let baseline = levels(&d.baseline.levers);
        match curve::levels(of_file, &baseline, &levels(&d.treatment.levers)) {
            Err(problem) => self.wrong(&of_file.lever, problem),
            Ok(found) => {
                self.further_arms = found.levels.len().saturating_sub(2);
                for level in found.levels {
                    self.level("curve", &format!("{}={}", found.lever, level.value));
                    let own = curve::levers(&baseline, &found.lever, &level.value);
                    let own: Vec<String> = own.iter().map(|l| format!("{}={}", l.lever, l.value)).collect();
                    let levels = [d.set_up.as_slice(), own.as_slice()].concat();
                    if let Ok(lever_set) = LeverSet::parse(&pairs(&levels)) {
                        self.load(&d.load, &lever_set, &own);
                    }
                }
            }
        }
        let fits = matches!(d.execution.mode, Mode::InPlace | Mode::Rows);
        self.need(fits, "mode", "execution.mode: a curve needs rows or in_place");
        let survival = d.responses.first().is_some_and(|response| response.name == survival::NAME);
        self.need(!survival, survival::NAME, "response.name: a curve has no survival");
    }

    /// The load resolves with the options of an arm; an arm of a probe names what it is.
    fn load(&mut self, load: &LoadDefinition, lever_set: &LeverSet, own: &[String]) {
        let Some(probe) = &load.probe else {
            for problem in load::resolve(load, lever_set).err().into_iter().flatten() {
                self.wrong(&load.workload, format!("load: {problem}"));
            }
            return;
        };
        match probing(load, lever_set) {
            Ok(probing) => self.set_up_s.push(probing.set_up_s()),
            Err(problems) => {
                for problem in problems {
                    self.wrong(probe, format!("load: {problem}"));
                }
            }
        }
        self.need(
            !own.is_empty(),
            probe,
            "load: each arm of a probe names a lever: there is no server as it is",
        );
        let in_place = self.definition().execution.mode == Mode::InPlace;
        self.need(
            in_place,
            "mode",
            "execution.mode: the arms of a probe are swapped between slices: use in_place",
        );
    }

    /// Each factor is a lever with two levels that it accepts, and a design with them fits into each extent.
    fn factors(&mut self) {
        let d = self.experiment.definition.clone();
        let alone = d.baseline.levers.is_empty() && d.treatment.levers.is_empty() && d.jobs.is_empty();
        self.need(alone, "factors", "factors: they take the place of baseline, treatment and jobs");
        for text in &d.factors {
            match factorial::design::parse(text) {
                Err(error) => self.wrong(text, format!("factors: {error}")),
                Ok(factor) => [factor.low, factor.high]
                    .iter()
                    .for_each(|level| self.level("factors", &format!("{}={}", level.lever, level.value))),
            }
        }
        for response in &d.responses {
            let known = factorial::analyse::RESPONSES;
            if !known.contains(&response.name.as_str()) {
                let text = format!("response.name: of several factors it is one of {}", known.join(", "));
                self.wrong(&response.name, text);
            }
        }
        if !self.mistakes.is_empty() {
            return;
        }
        for (name, extent) in [("quick", &d.quick), ("full", &d.full)] {
            let planned = self.experiment.factorial(extent).map(|wanted| {
                let now = time::OffsetDateTime::UNIX_EPOCH;
                factorial::design::Planned::plan(&wanted, now).map(drop)
            });
            for problem in planned.and_then(Result::err).into_iter().flatten() {
                self.wrong(name, format!("{name}: {problem}"));
            }
        }
    }

    /// Each class is one of the workload's, on both extents; the arms come from the command line.
    fn classes(&mut self) {
        let d = self.experiment.definition.clone();
        let alone = d.baseline.levers.is_empty() && d.treatment.levers.is_empty() && d.jobs.is_empty();
        self.need(
            alone,
            "classes",
            "classes: their arms are named on the command line, and they have no jobs",
        );
        let Some(classes) = &d.classes else { return };
        self.need(!classes.names.is_empty(), "names", "classes.names: one at least");
        for extent in [&classes.quick, &classes.full] {
            let fine =
                !extent.connections.is_empty() && extent.connections.iter().all(|n| (1..=1000).contains(n));
            self.need(fine, "connections", "classes: connections are numbers from 1 to 1000, one at least");
            self.need(extent.rounds > 0, "rounds", "classes: rounds are 1 or more");
            for name in &classes.names {
                let now = time::OffsetDateTime::UNIX_EPOCH;
                for problem in crate::classes::check(name, &d, extent, now).err().into_iter().flatten() {
                    self.wrong(name, format!("classes: {problem}"));
                }
            }
        }
    }

    fn level(&mut self, list: &str, text: &str) {
        let Some(LeverLevel { lever, value }) = side::level(text) else {
            return self.wrong(
                text,
                format!("{list}: {text:?} has no form LEVER=VALUE, as in option.sync_binlog=0"),
            );
        };
        match table().lever(&lever) {
            Err(error) => self.wrong(text, format!("{list}: {error}")),
            Ok(row) if !row.form.accepts(&value) => {
                self.wrong(text, format!("{list}: {lever} does not take {value:?}: it takes {}", row.form));
            }
            Ok(_) => {}
        }
    }

    fn responses(&mut self) {
        let responses = self.definition().responses.clone();
        self.need(!responses.is_empty(), "", "response: one at least");
        let load = if self.definition().load.probe.is_some() { Load::Probe } else { Load::Workload };
        let of_load = |measure: &&Measure| measure.load == load;
        let known: Vec<&str> = MEASURES.iter().filter(of_load).map(|m| m.name).collect();
        for response in &responses {
            if !known.contains(&response.name.as_str()) {
                let near = mydyno_settings::nearest(&response.name, known.iter().copied());
                let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
                self.wrong(&response.name, format!("response.name: it is one of {}{near}", known.join(", ")));
            }
            let in_rows = self.definition().execution.mode == Mode::Rows;
            if response.name == survival::NAME && !in_rows {
                self.wrong(
                    "mode",
                    "execution.mode: survival needs rows: a killed server is missing in later slices",
                );
            }
            if let Err(error) = parse_share(&response.delta) {
                self.wrong(&response.delta, format!("response.delta: {error}"));
            }
        }
    }

    fn extents(&mut self) {
        let d = self.experiment.definition.clone();
        for (name, extent) in [("quick", &d.quick), ("full", &d.full)] {
            match times(extent) {
                Err((value, error)) => self.wrong(&value, format!("{name}: {error}")),
                Ok((times, budget_s)) => {
                    let times = budget::Times { further_arms: self.further_arms, ..times };
                    let times = times.of_probe(&self.set_up_s);
                    let starts = extent.starts.map(|n| n as usize);
                    // Several factors and classes of statements have shapes of their own.
                    if d.factors.is_empty()
                        && d.classes.is_none()
                        && let Err(error) = budget::shape(budget_s, &times, starts, d.execution.mode)
                    {
                        self.wrong(&extent.budget, format!("{name}.budget: {error}"));
                    }
                }
            }
        }
        for size in [&d.needs.memory, &d.needs.disk].into_iter().flatten() {
            if let Err(error) = parse_size(size) {
                self.wrong(size, format!("needs: {error}"));
            }
        }
    }

    /// Whether the server of each arm has a limit of memory.
    fn memory_is_limited(&self) -> bool {
        let d = self.definition();
        let limits = |levers: &[String]| levers.iter().any(|level| level.starts_with("cgroup.memory="));
        limits(&d.set_up) || (limits(&d.baseline.levers) && limits(&d.treatment.levers))
    }

    fn jobs(&mut self) {
        for job in self.definition().jobs.clone() {
            for time in [&job.at, &job.duration].into_iter().flatten() {
                if let Err(error) = parse_duration(time) {
                    self.wrong(time, format!("job: {error}"));
                }
            }
            match &job.work {
                Work::FileCopy(size) => {
                    if let Err(error) = parse_size(size) {
                        self.wrong(size, format!("job.work.file_copy: {error}"));
                    }
                }
                Work::MemoryHog(size) => {
                    if let Err(error) = parse_size(size) {
                        self.wrong(size, format!("job.work.memory_hog: {error}"));
                    }
                    let limited = self.memory_is_limited();
                    self.need(
                        limited,
                        "memory_hog",
                        "job.work.memory_hog: each arm needs cgroup.memory, or the host would run out of memory",
                    );
                }
                Work::Statement(sql) => {
                    self.need(!sql.trim().is_empty(), "statement", "job.work.statement: it is empty")
                }
                Work::CpuHog(n) | Work::ConnectionChurn(n) => {
                    self.need((1..=10_000).contains(n), "work", "job.work: a number from 1 to 10000");
                }
            }
        }
    }
}

/// Levels as pairs; texts without the form LEVER=VALUE are left out.
fn pairs(levels: &[String]) -> Vec<(String, String)> {
    levels.iter().filter_map(|text| side::level(text)).map(|level| (level.lever, level.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An experiment of the program with one text replaced.
    fn changed(from: &str, to: &str) -> Vec<String> {
        let text = include_str!("../../../../experiments/sync-delay.toml");
        assert!(text.contains(from), "{from}");
        match Experiment::read("sync-delay.toml", &text.replacen(from, to, 1)) {
            Ok(_) => vec![],
            Err(mistakes) => mistakes.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn several_factors_have_the_responses_and_levels_that_they_can_have() {
        let text = include_str!("../../../../experiments/hot-row-params.toml");
        for (from, to, says) in [
            ("sync_binlog=1,0", "sync_binlgo=1,0", "sync_binlog"),
            ("sync_binlog=1,0", "sync_binlog=1", "needs two"),
            ("\"response_p95\"", "\"server_peak_bytes\"", "of several factors it is one of"),
            ("[load]", "[treatment]\nlevers = [\"option.log_bin=1\"]\n\n[load]", "take the place"),
            ("budget = \"4m\"", "budget = \"5s\"", "quick"),
        ] {
            assert!(text.contains(from), "{from}");
            let changed = text.replacen(from, to, 1);
            let mistakes = Experiment::read("hot-row-params.toml", &changed).err().unwrap_or_default();
            let found = mistakes.iter().any(|mistake| mistake.to_string().contains(says));
            assert!(found, "{to}: {mistakes:?}");
        }
    }

    #[test]
    fn each_mistake_is_told_with_its_place_and_the_nearest_name() {
        for (from, to, says) in [
            ("server.sync_delay=1ms", "server.sync_dealy=1ms", "did you mean server.sync_delay"),
            ("server.sync_delay=1ms", "server.sync_delay=much", "server.sync_delay"),
            ("server.sync_delay=1ms", "option.sync_binlgo=1", "sync_binlog"),
            ("server.sync_delay=1ms", "server.sync_delay", "no form LEVER=VALUE"),
            ("oltp_update_non_index", "oltp_update_nonindex", "oltp_update_non_index"),
            ("\"transactions_per_s\"", "\"transaction_per_s\"", "did you mean transactions_per_s?"),
            ("delta = \"5%\"", "delta = \"5\"", "response.delta"),
            ("budget = \"2m\"", "budget = \"2 s\"", "are too short"),
            ("name = \"sync-delay\"", "name = \"sync-delays\"", "the file is called sync-delay.toml"),
            ("expects = \"supported\"", "expects = \"suported\"", "did you mean supported?"),
            ("mode = \"alternate\"", "mode = \"in_place\"", "needs a start of the server"),
            ("since = ", "claims = [\"swapiness\"]\nsince = ", "did you mean"),
            (
                "[[response]]",
                "[[job]]\nwork = { memory_hog = \"1G\" }\n\n[[response]]",
                "job.work.memory_hog: each arm needs cgroup.memory",
            ),
            ("direction = \"lower\"", "directoin = \"lower\"", "did you mean `direction`?"),
        ] {
            let mistakes = changed(from, to);
            let found = mistakes.iter().find(|mistake| mistake.contains(says));
            let found = found.unwrap_or_else(|| panic!("{to}: {mistakes:?}"));
            assert_eq!(mistakes.iter().filter(|mistake| mistake.contains(says)).count(), 1, "{mistakes:?}");
            let place: Vec<&str> = found.split(':').take(3).collect();
            assert!(place[1].parse::<usize>().is_ok() && place[2].parse::<usize>().is_ok(), "{found}");
        }
    }
}
