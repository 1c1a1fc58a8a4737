//! Counters and histograms of a worker between two hand-overs.

use std::collections::BTreeMap;

use mydyno_stats::{Histogram, SparseHistogram};
use mydyno_workload::session::Counts;

/// The first error of a code that a worker saw in a step, for the event log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstError {
    /// Code, as in 1213; 2000 to 2999 are the client's own.
    pub code: u16,
    /// SQLSTATE.
    pub sqlstate: String,
    /// The server's words, or the connection's.
    pub message: String,
    /// Number of the operation that it answered.
    pub operation: usize,
}

/// Response and service times of one operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times<H = Histogram> {
    /// From the intended instant.
    pub response: H,
    /// From the send.
    pub service: H,
}

/// Counters and histograms of a window. Merging those of k workers gives what one worker would have recorded.
pub type Recorded = Recorder<SparseHistogram>;

/// Counters and histograms: of a worker, which records into them, or as [`Recorded`] what is kept of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorder<H = Histogram> {
    /// Transactions without an error.
    pub transactions: u64,
    /// Statements without an error.
    pub queries: u64,
    /// Errors by code.
    pub errors: BTreeMap<u16, u64>,
    /// Transactions tried again.
    pub retries: u64,
    /// Connections opened again after they were lost.
    pub reconnects: u64,
    /// Answers with a wrong sequence number, which were accepted.
    pub misnumbered: u64,
    /// Transactions begun.
    pub started: u64,
    /// Transactions given up.
    pub failed: u64,
    /// Time in attempts that were tried again, each from its send to the end of its rollback.
    pub retried: H,
    /// Time to open connections while the load runs.
    pub connect: H,
    /// From the intended instant to the send, per transaction.
    pub lateness: H,
    /// By operation.
    pub times: Vec<Times<H>>,
    /// The workload's own counts, in the order of `counted`; empty where it counts nothing.
    pub counts: Vec<u64>,
    /// Their names.
    pub counted: &'static [&'static str],
}

impl Recorder {
    /// An empty one for this many operations.
    pub fn new(operations: usize) -> Self {
        Self {
            transactions: 0,
            queries: 0,
            errors: BTreeMap::new(),
            retries: 0,
            reconnects: 0,
            misnumbered: 0,
            started: 0,
            failed: 0,
            retried: Histogram::new(),
            connect: Histogram::new(),
            lateness: Histogram::new(),
            times: vec![Times::default(); operations],
            counts: Vec::new(),
            counted: &[],
        }
    }

    /// A statement was answered without an error.
    #[inline]
    pub fn statement(&mut self, operation: usize, response_ns: u64, service_ns: u64) {
        self.queries += 1;
        let times = &mut self.times[operation];
        times.response.record(response_ns);
        times.service.record(service_ns);
    }

    /// A transaction of several statements completed; it is recorded under this operation.
    #[inline]
    pub fn transaction(&mut self, operation: usize, response_ns: u64, service_ns: u64) {
        let times = &mut self.times[operation];
        times.response.record(response_ns);
        times.service.record(service_ns);
    }

    /// Counts an error.
    pub fn error(&mut self, code: u16) {
        *self.errors.entry(code).or_insert(0) += 1;
    }

    /// Takes what was recorded, and begins anew. The histograms stay where they are: a recorder of fifty operations has 4 MB, and what a
    /// second puts into it a tenth of that.
    pub fn take(&mut self) -> Recorded {
        let taken = |histogram: &mut Histogram| {
            let sparse = histogram.to_sparse();
            histogram.clear();
            sparse
        };
        let times = self.times.iter_mut();
        Recorder {
            transactions: std::mem::take(&mut self.transactions),
            queries: std::mem::take(&mut self.queries),
            errors: std::mem::take(&mut self.errors),
            retries: std::mem::take(&mut self.retries),
            reconnects: std::mem::take(&mut self.reconnects),
            misnumbered: std::mem::take(&mut self.misnumbered),
            started: std::mem::take(&mut self.started),
            failed: std::mem::take(&mut self.failed),
            retried: taken(&mut self.retried),
            connect: taken(&mut self.connect),
            lateness: taken(&mut self.lateness),
            times: times
                .map(|Times { response, service }| Times {
                    response: taken(response),
                    service: taken(service),
                })
                .collect(),
            counts: std::mem::take(&mut self.counts),
            counted: std::mem::take(&mut self.counted),
        }
    }
}

impl<H> Recorder<H> {
    /// Adds what the workload counts itself.
    #[inline]
    pub fn count(&mut self, more: Counts<'_>) {
        if more.names.is_empty() {
            return;
        }
        self.counted = more.names;
        self.counts.resize(more.names.len(), 0);
        self.counts.iter_mut().zip(more.values).for_each(|(count, more)| *count += more);
    }
}

impl Recorded {
    /// Adds what another worker has recorded.
    pub fn merge(&mut self, other: &Self) {
        self.transactions += other.transactions;
        self.queries += other.queries;
        self.retries += other.retries;
        self.reconnects += other.reconnects;
        self.misnumbered += other.misnumbered;
        self.started += other.started;
        self.failed += other.failed;
        self.retried.merge(&other.retried);
        self.connect.merge(&other.connect);
        for (code, count) in &other.errors {
            *self.errors.entry(*code).or_insert(0) += count;
        }
        self.lateness.merge(&other.lateness);
        self.count(Counts { names: other.counted, values: &other.counts });
        for (mine, theirs) in self.times.iter_mut().zip(&other.times) {
            mine.response.merge(&theirs.response);
            mine.service.merge(&theirs.service);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Happening {
        Statement(usize, u64, u64),
        Transaction(u64, u64),
        Error(u16),
        Retry(u64),
        Failure,
        Connect(u64),
        Counts(u64, u64),
    }

    fn happening() -> impl Strategy<Value = Happening> {
        prop_oneof![
            (0usize..3, 0u64..1 << 40, 0u64..1 << 40).prop_map(|(o, r, s)| Happening::Statement(o, r, s)),
            (0u64..1 << 40, 0u64..1 << 40).prop_map(|(r, s)| Happening::Transaction(r, s)),
            (1000u16..1010).prop_map(Happening::Error),
            (0u64..1 << 40).prop_map(Happening::Retry),
            Just(Happening::Failure),
            (0u64..1 << 40).prop_map(Happening::Connect),
            (0u64..9, 0u64..9).prop_map(|(one, other)| Happening::Counts(one, other)),
        ]
    }

    fn record(recorder: &mut Recorder, happening: &Happening) {
        match happening {
            Happening::Statement(operation, response, service) => {
                recorder.statement(*operation, *response, *service);
            }
            Happening::Transaction(response, service) => {
                recorder.started += 1;
                recorder.transactions += 1;
                recorder.lateness.record(response.abs_diff(*service));
                recorder.transaction(0, *response, *service);
            }
            Happening::Error(code) => recorder.error(*code),
            Happening::Retry(ns) => {
                recorder.retries += 1;
                recorder.retried.record(*ns);
            }
            Happening::Failure => recorder.failed += 1,
            Happening::Counts(one, other) => {
                recorder.count(Counts { names: &["one", "other"], values: &[*one, *other] });
            }
            Happening::Connect(ns) => {
                recorder.reconnects += 1;
                recorder.connect.record(*ns);
            }
        }
    }

    proptest! {
        #[test]
        fn the_recorders_of_several_workers_merge_to_that_of_one(
            all in prop::collection::vec((0usize..4, happening()), 0..200)
        ) {
            let mut one = Recorder::new(3);
            let mut workers = vec![Recorder::new(3); 4];
            for (worker, happening) in &all {
                record(&mut one, happening);
                record(&mut workers[*worker], happening);
            }
            let mut merged = Recorder::new(3).take();
            for worker in &mut workers {
                merged.merge(&worker.take());
                // Nothing is left for the next window.
                prop_assert_eq!(&*worker, &Recorder::new(3));
            }
            prop_assert_eq!(merged, one.take());
        }
    }
}
