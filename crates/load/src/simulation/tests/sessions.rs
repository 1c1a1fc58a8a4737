//! Statements prepared while running, in virtual time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mydyno_model::record::OperationInfo;
use mydyno_workload::draws::Draws;
use mydyno_workload::session::ParamType;
use mydyno_workload::{Command, Fault, Handle, Param, Session, StatementSpec, Workload};

use super::{Step, point_select};
use crate::End;
use crate::simulation::{Period, ServerScript, Simulation};

/// A point select that each connection prepares while running, and prepares again after a reconnect.
struct Late {
    operations: Vec<OperationInfo>,
    prepared: AtomicU64,
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
            Some(handle) if handle.generation == session.generation() => handle,
            _ => {
                let params = vec![ParamType::Int];
                let spec = StatementSpec { sql: "SELECT ?".to_owned(), params, ..StatementSpec::default() };
                self.prepared.fetch_add(1, Ordering::Relaxed);
                session.prepare(&spec).await?
            }
        };
        stream.current = Some(handle);
        session.stream(Command::Handle(handle, &[Param::Int(1)]), &mut ()).await.map(drop)
    }
}

#[test]
fn statements_are_prepared_once_a_connection_also_after_outages_and_cut_answers() {
    let late = Late { operations: point_select().operations().to_vec(), prepared: AtomicU64::new(0) };
    let ms = |from: u64, length: u64| Period { from_ns: from * 1_000_000, length_ns: length * 1_000_000 };
    let server = ServerScript {
        slots: 4,
        outages: vec![ms(500, 200)],
        cuts: 0.002,
        split_answers: 0.5,
        errors: Some((0.01, 1213)),
        ..ServerScript::default()
    };
    let simulation = Simulation { seed: 3, server, ..Simulation::default() };
    let step = Step { measure: Duration::from_secs(3), ..Step::default() };
    let ran = step.run_workload(&late, &simulation);
    assert!(matches!(&ran.end, End::Complete(shortfalls) if shortfalls.unanswered == 0), "{:?}", ran.end);
    assert!(ran.sum(|i| i.transactions) > 1_000 && ran.sum(|i| i.retries) > 10);
    assert!(ran.served.connections > 4, "{:?}", ran.served);
    assert_eq!(ran.served.answered, ran.sum(|i| i.queries));
    assert_eq!(late.prepared.into_inner(), ran.served.connections);
}
