//! A server that is killed under TPC-C's load, with durable settings: no order that was acknowledged may be lost, and the conditions
//! hold, on a snapshot also while the load runs.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mydyno_tables::prepare::Prepared as Made;
use mydyno_wire::{Client, ConnectOptions, Endpoint};
use mydyno_workload::tpcc::Tpcc;
use mydyno_workload::tpcc::execute::Output;
use mydyno_workload::tpcc::inputs::Input;
use mydyno_workload::{Fault, TransactionStream as _, Workload as _};

use crate::behaviour::options;
use crate::server::Server;
use crate::tpcc::Blocking;
use crate::until::found;

const DATABASE: &str = "tpcc_killed";
const CONNECTIONS: u64 = 4;
/// Orders before the server is killed.
const ORDERS: u64 = 400;

/// The server on the data of one that was killed; it ends with the test.
struct Again(Child);

impl Again {
    fn start(killed: &Server) -> Self {
        let socket = killed.socket();
        let folder = socket.parent().unwrap();
        let mut command = Command::new("mariadbd");
        command.args([
            "--no-defaults",
            "--skip-log-bin",
            "--skip-networking",
            "--innodb-buffer-pool-size=512M",
        ]);
        command.args(["--innodb-log-file-size=4M", "--innodb-use-native-aio=0", "--user=root"]);
        command.arg(format!("--datadir={}", folder.join("data").display()));
        command.arg(format!("--tmpdir={}", folder.display()));
        command.arg(format!("--socket={}", folder.join("again.sock").display()));
        command.arg(format!("--pid-file={}", folder.join("again.pid").display()));
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One connection's load until the server is gone; acknowledged orders go to `acknowledged`.
fn load(server: &Server, tpcc: &Tpcc, connection: u64, acknowledged: &Mutex<BTreeSet<(u64, u64, i64)>>) {
    let mut session = Blocking::new(server.client(), DATABASE, tpcc);
    let mut stream = tpcc.stream(connection);
    loop {
        stream.begin();
        let input = tpcc.draw(&mut stream);
        stream.redraw();
        match session.send(tpcc, &mut stream) {
            Ok(()) => {
                if let (Input::NewOrder(order), Output::NewOrder { order: number, .. }) =
                    (input, stream.output())
                {
                    acknowledged.lock().unwrap().insert((order.warehouse, order.district, number));
                }
            }
            // A deadlock or a lock wait: the next transaction is another one.
            Err(Fault::Server(error)) if [1213, 1205].contains(&error.code) => {
                if session.rollback().is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

#[test]
fn no_acknowledged_order_is_lost_when_the_server_is_killed_and_conditions_hold_before_during_and_after() {
    let server = Server::start();
    let options = options("tpcc", &[("warehouses", "1")]);
    let tables = Tpcc::tables(DATABASE, &options, 3);
    let stop = AtomicBool::new(false);
    let made = tables.prepare(&|| server.connect(), 2, &stop, &mut |_| {}).unwrap();
    assert_eq!(made, Made::Made);
    let mut client = server.client();
    client.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1").unwrap();
    let mark = tables.check(&mut client).unwrap();
    tables.note_use(&mut client, &mark).unwrap();
    let tpcc = Tpcc::new(&options, 31);
    let acknowledged = Mutex::new(BTreeSet::new());
    let checks_during = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for connection in 0..CONNECTIONS {
            let (server, tpcc, acknowledged) = (&server, &tpcc, &acknowledged);
            scope.spawn(move || load(server, tpcc, connection, acknowledged));
        }
        let deadline = Instant::now() + Duration::from_secs(300);
        while (acknowledged.lock().unwrap().len() as u64) < ORDERS && Instant::now() < deadline {
            // While orders are entered: the conditions are asked of one snapshot.
            let before = acknowledged.lock().unwrap().len();
            tables.check(&mut client).unwrap();
            let more = acknowledged.lock().unwrap().len() - before;
            checks_during.fetch_add(u64::from(more > 0), Ordering::Relaxed);
        }
        // SAFETY: the pid is that of a server which this test has started and which its keeper has not awaited.
        assert_eq!(unsafe { libc::kill(server.pid as i32, libc::SIGKILL) }, 0);
    });
    assert!(checks_during.load(Ordering::Relaxed) > 0, "no check ran during the load");
    let again = Again::start(&server);
    let options = ConnectOptions::new(Endpoint::Unix(server.socket().with_file_name("again.sock")), "root");
    let mut client = found("a server that answers", || Client::connect(&options).ok());
    let sql = format!("SELECT o_w_id, o_d_id, o_id FROM {DATABASE}.orders WHERE o_id > 3000");
    let found = client.query(&sql).unwrap();
    let number = |row, column| found.number::<u64>(row, column).unwrap();
    let found: BTreeSet<(u64, u64, i64)> =
        (0..found.len()).map(|row| (number(row, 0), number(row, 1), number(row, 2) as i64)).collect();
    let acknowledged = acknowledged.into_inner().unwrap();
    let lost: Vec<_> = acknowledged.difference(&found).collect();
    assert!(
        acknowledged.len() as u64 >= ORDERS && lost.is_empty(),
        "lost of {}: {lost:?}",
        acknowledged.len()
    );
    // At the most one order of each connection was committed and not acknowledged.
    assert!(found.len() <= acknowledged.len() + CONNECTIONS as usize);
    tables.check(&mut client).unwrap();
    drop(again);
}
