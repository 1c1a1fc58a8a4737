//! Two servers loaded at the same time, each with its load on an equal part of the CPUs.
//!
//! A disturbance of the host affects both at once and cancels out, so the error is smaller than with alternation on a
//! noisy host. The measured effect is another one: each server shares memory bandwidth, caches and the disk with the
//! other.

use std::sync::Barrier;
use std::thread;

use mydyno_host::{Host, task};
use mydyno_levers::LeverSet;
use mydyno_load::clock::MonotonicClock;
use mydyno_model::experiment::Row;
use mydyno_model::experiment::definition::Job;
use mydyno_model::server::ServerInfo;
use mydyno_run::Cancel;
use mydyno_sandbox::{Site, confine, put_back};

use crate::error::ProveError;
use crate::slice::{self, Load, Measured};

/// Levers that assign CPUs themselves.
const OWN_CPUS: [&str; 4] = ["client.cpus", "server.affinity", "cgroup.cpu", "cgroup.cpuset"];

/// Refuses levers and jobs that two simultaneous servers cannot have.
///
/// # Errors
/// A lever that assigns CPUs, or jobs beside the load.
pub(crate) fn check<'a>(arms: impl Iterator<Item = &'a LeverSet>, jobs: &[Job]) -> Result<(), ProveError> {
    let refuse = |why: String| Err(ProveError::Duet { why });
    for lever_set in arms {
        let of_cpus = |(id, _, _): &&(String, String, _)| OWN_CPUS.contains(&id.as_str());
        if let Some((id, value, _)) = lever_set.all.iter().find(of_cpus) {
            return refuse(format!("{id}={value} shares out CPUs, which a duet does itself"));
        }
    }
    if !jobs.is_empty() {
        return refuse("its jobs beside the load would meet both arms: leave --duet out".to_owned());
    }
    Ok(())
}

/// The two parts of this command's CPUs.
pub(crate) struct Parts<'a> {
    site: Site<'a>,
    purpose: String,
    cpus: [Vec<usize>; 2],
}

impl<'a> Parts<'a> {
    /// Halves of the CPUs; one of an odd number is left out.
    ///
    /// # Errors
    /// There is only one CPU.
    pub(crate) fn new(host: &'a Host, purpose: String) -> Result<Self, ProveError> {
        let own = task::own_cpus().and_then(|text| task::parse_cpus(&text)).unwrap_or_default();
        let Some(cpus) = halves(&own) else {
            let why = "it needs two CPUs, and this command has one".to_owned();
            return Err(ProveError::Duet { why });
        };
        Ok(Self { site: Site::new(host), purpose, cpus })
    }

    /// Both parts.
    pub(crate) fn cpus(&self) -> &[Vec<usize>; 2] {
        &self.cpus
    }

    /// Restricts each server to its part. Each change is journalled first, and ends with the server.
    ///
    /// # Errors
    /// A server has ended, or the system refuses.
    pub(crate) fn confine<'s>(
        &self,
        servers: impl Iterator<Item = (&'s ServerInfo, &'s [usize])>,
    ) -> Result<(), ProveError> {
        self.put_back()?;
        for (server, cpus) in servers {
            let list: Vec<String> = cpus.iter().map(ToString::to_string).collect();
            confine(&self.site, server, &self.purpose, &list.join(","))
                .map_err(|error| ProveError::Duet { why: error.to_string() })?;
        }
        Ok(())
    }

    /// Lets the servers use all CPUs again.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub(crate) fn put_back(&self) -> Result<(), ProveError> {
        let done = put_back(&self.site, &self.purpose);
        done.map(drop).map_err(|error| ProveError::Duet { why: error.to_string() })
    }
}

fn halves(cpus: &[usize]) -> Option<[Vec<usize>; 2]> {
    let half = cpus.len() / 2;
    (half > 0).then(|| [cpus[..half].to_vec(), cpus[half..2 * half].to_vec()])
}

/// Loads two servers from the same instant on, and returns both measurements.
pub(crate) fn measure(loads: Vec<(Row, &Load<'_>)>, clock: &MonotonicClock, stop: &Cancel) -> Vec<Measured> {
    let together = Barrier::new(loads.len());
    thread::scope(|scope| {
        let threads: Vec<_> = loads
            .into_iter()
            .map(|(row, load)| {
                let together = &together;
                scope.spawn(move || {
                    together.wait();
                    slice::measure(load, row, clock, stop)
                })
            })
            .collect();
        // A panic in the thread is a defect of the load engine, and propagated.
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.map(|thread| thread.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

#[cfg(test)]
mod tests {
    use mydyno_model::experiment::definition::Work;

    use super::*;

    #[test]
    fn the_parts_of_the_cpus_are_equal() {
        assert_eq!(halves(&[0, 1]), Some([vec![0], vec![1]]));
        assert_eq!(halves(&[0, 2, 3, 5, 7]), Some([vec![0, 2], vec![3, 5]]));
        assert_eq!((halves(&[3]), halves(&[])), (None, None));
    }

    #[test]
    fn levers_of_cpus_and_jobs_are_refused() {
        let lever_set =
            |lever: &str, value: &str| LeverSet::parse(&[(lever.to_owned(), value.to_owned())]).unwrap();
        let fine = lever_set("option.sync_binlog", "1");
        assert!(check([&fine].into_iter(), &[]).is_ok());
        let refused = check([&lever_set("client.cpus", "0")].into_iter(), &[]).unwrap_err().to_string();
        assert!(refused.contains("client.cpus=0 shares out CPUs"), "{refused}");
        let job = Job { work: Work::CpuHog(1), at: None, duration: None, only: None };
        assert!(check([&fine].into_iter(), &[job]).is_err());
    }
}
