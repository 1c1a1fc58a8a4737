//! Statements prepared while running, on a scripted server that numbers its packets oddly.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mydyno_load::clock::MonotonicClock;
use mydyno_load::{End, StepEvent, StepSpec, Warmup, run_step};
use mydyno_model::plan::{Arrivals, ConnectionPlan, WaitPlan};
use mydyno_model::record::OperationInfo;
use mydyno_wire::{Client, ConnectOptions, Endpoint};
use mydyno_workload::draws::Draws;
use mydyno_workload::session::ParamType;
use mydyno_workload::{Command, Fault, Handle, Param, Session, StatementSpec, Workload};

use crate::script::{Answer, Script};
use crate::{backend, point_select};

/// A statement that each connection prepares with its first transaction.
struct Late {
    operations: Vec<OperationInfo>,
}

impl Workload for Late {
    type Stream = Draws<Option<Handle>>;

    fn operations(&self) -> &[OperationInfo] {
        &self.operations
    }

    fn statements(&self) -> &[StatementSpec] {
        &[]
    }

    fn stream(&self, _: u64) -> Self::Stream {
        Draws::new(None)
    }

    fn transactional(&self) -> bool {
        false
    }

    fn writes(&self) -> bool {
        false
    }

    async fn transaction<S: Session>(&self, stream: &mut Self::Stream, session: &mut S) -> Result<(), Fault> {
        let handle = match stream.current {
            Some(handle) => handle,
            None => {
                let params = vec![ParamType::Int, ParamType::Int];
                let spec = StatementSpec { sql: "DO ?, ?".to_owned(), params, ..StatementSpec::default() };
                session.prepare(&spec).await?
            }
        };
        stream.current = Some(handle);
        session.stream(Command::Handle(handle, &[Param::Int(1); 2]), &mut ()).await.map(drop)
    }
}

/// Answers to statements, those with a wrong sequence number, and how the step ended.
fn run(answer: Answer) -> (u64, u64, String) {
    let script = Script::start(answer);
    let connect = || Client::connect(&ConnectOptions::new(Endpoint::Unix(script.socket()), "u"));
    let workload = Late { operations: point_select().operations().to_vec() };
    let keep = ConnectionPlan { reconnect: false, ..ConnectionPlan::default() };
    let spec = StepSpec {
        number: 0,
        workload: &workload,
        connections: 4,
        workers: 2,
        arrivals: &Arrivals::CLOSED,
        seed: 1,
        warmup: Warmup::Fixed(Duration::ZERO),
        measure: Duration::from_millis(600),
        keep: &keep,
        wait: &WaitPlan { backend: backend(), ..WaitPlan::default() },
        stop_on_error: None,
        connect: &connect,
    };
    let mut queries = 0;
    let end = run_step(&MonotonicClock::start(), &spec, &AtomicBool::new(false), &mut |event| {
        if let StepEvent::Interval(interval) = event {
            queries += interval.queries;
        }
    });
    match end {
        Ok(End::Complete(shortfalls)) => (queries, shortfalls.misnumbered, "complete".to_owned()),
        other => (queries, 0, format!("{other:?}")),
    }
}

#[test]
fn answers_to_a_prepare_with_a_wrong_number_are_accepted_and_counted() {
    let (queries, misnumbered, end) = run(Answer::Misnumbered);
    assert_eq!(end, "complete");
    // Each of four connections prepares once.
    assert!(queries > 0);
    assert_eq!(misnumbered, queries + 4);
}

#[test]
fn definitions_of_a_prepare_that_do_not_follow_each_other_lose_the_connection() {
    let (_, _, end) = run(Answer::Scattered);
    assert!(end.contains("number 9 instead of 2"), "{end}");
}
