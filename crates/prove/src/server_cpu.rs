//! The CPU time of a private server in a slice, as a figure under the name of a response.

use mydyno_linux::calls::cpu_clocks::process_cpu_s;
use mydyno_model::record::Phase;

/// Name of the response: microseconds of CPU, user and system, of all threads of the server for each transaction of the load.
pub(crate) const NAME: &str = "server_cpu_us_per_transaction";

/// Readings of a server's CPU clock at the ends of the windows of a load.
pub(crate) struct ServerCpu {
    pid: u32,
    /// Where the measured part begins: at the end of the last window before it, or where the load begins.
    begin_s: f64,
    /// At the end of the last measured window.
    end_s: Option<f64>,
}

impl ServerCpu {
    /// Begins with the load. A process that has ended has no clock.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        process_cpu_s(pid).map(|begin_s| Self { pid, begin_s, end_s: None })
    }

    /// Reads the clock at the end of a window.
    pub(crate) fn at_end_of(&mut self, phase: Phase) {
        match (phase, process_cpu_s(self.pid)) {
            (Phase::Measure, now_s) => self.end_s = now_s,
            (_, Some(now_s)) if self.end_s.is_none() => self.begin_s = now_s,
            // What is still answered after the measured part belongs to no transaction of it.
            _ => {}
        }
    }

    /// CPU time of the measured part for each of its transactions; none if there is no transaction, or if the server has ended.
    pub(crate) fn per_transaction_us(&self, transactions: u64) -> Option<f64> {
        let used_us = (self.end_s? - self.begin_s) * 1e6;
        (transactions > 0 && used_us > 0.0).then(|| used_us / transactions as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses 5 ms of this process's CPU.
    fn work() {
        let begin_s = process_cpu_s(std::process::id()).unwrap();
        while process_cpu_s(std::process::id()).unwrap() - begin_s < 0.005 {
            std::hint::black_box(0u64);
        }
    }

    #[test]
    fn the_measured_part_counts_and_the_warm_up_does_not() {
        let mut cpu = ServerCpu::of(std::process::id()).unwrap();
        let at_start_s = cpu.begin_s;
        work();
        cpu.at_end_of(Phase::Warmup);
        assert!(cpu.begin_s - at_start_s >= 0.005);
        assert_eq!(cpu.per_transaction_us(10), None, "nothing is measured yet");
        work();
        cpu.at_end_of(Phase::Measure);
        assert_eq!(cpu.per_transaction_us(0), None);
        let us = cpu.per_transaction_us(10).unwrap();
        assert!(us >= 500.0, "{us}");
        assert_eq!(us, (cpu.end_s.unwrap() - cpu.begin_s) * 1e6 / 10.0);
        work();
        cpu.at_end_of(Phase::Drain);
        assert_eq!(cpu.per_transaction_us(10), Some(us), "the rest is not measured");
    }

    #[test]
    fn a_server_that_has_ended_has_no_figure() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut cpu = ServerCpu::of(child.id()).unwrap();
        cpu.at_end_of(Phase::Measure);
        child.kill().unwrap();
        child.wait().unwrap();
        cpu.at_end_of(Phase::Measure);
        assert_eq!(cpu.per_transaction_us(10), None);
        assert!(ServerCpu::of(child.id()).is_none());
    }
}
