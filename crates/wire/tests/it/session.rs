//! Information beside results: changes of the session, names of types, definitions that are left out; and
//! accounts that the operating system vouches for.

use mydyno_wire::{Client, SessionChange, Value};

use crate::fake::{Act, Fake, MYSQL_8, greeting, ok, packet};
use crate::server::shared;

#[test]
fn a_server_says_what_a_statement_changed_in_its_session() {
    let server = shared();
    let mut client = server.client();
    client.execute("CREATE DATABASE IF NOT EXISTS tracked").unwrap();
    client.use_schema("tracked").unwrap();
    assert_eq!(client.session_changes(), [SessionChange::Schema("tracked".into())]);
    client.execute("SET autocommit = 0").unwrap();
    let off = SessionChange::Variable { name: "autocommit".into(), value: "OFF".into() };
    assert!(client.session_changes().contains(&off), "{:?}", client.session_changes());
    client.query("SELECT 1").unwrap();
    assert_eq!(client.session_changes(), []);
    let mut options = server.options();
    options.session_tracking = false;
    let mut client = Client::connect(&options).unwrap();
    client.use_schema("tracked").unwrap();
    assert_eq!(client.session_changes(), []);
}

#[test]
fn types_behind_columns_have_names() {
    let server = shared();
    let mut client = server.client();
    let sql = "SELECT CAST('::1' AS INET6) a, JSON_OBJECT() b, POINT(1, 2) c, 5 d";
    let statement = client.prepare(sql).unwrap();
    for rows in [client.query(sql).unwrap(), client.execute_prepared(&statement, &[]).unwrap()] {
        let names: Vec<_> = rows.columns.iter().map(|c| (c.type_name.as_str(), c.format.as_str())).collect();
        assert_eq!(names, [("inet6", ""), ("", "json"), ("point", ""), ("", "")]);
        assert_eq!(rows.text(0, 0).unwrap(), "::1");
    }
    let mut options = server.options();
    options.extended_metadata = false;
    let rows = Client::connect(&options).unwrap().query(sql).unwrap();
    assert!(rows.columns.iter().all(|c| c.type_name.is_empty()));
}

const OPTIONAL: u32 = MYSQL_8 | 1 << 25;
const ROW: &[u8] = b"\x04abcd";
const END: &[u8] = &[0xFE, 0, 0, 2, 0, 0, 0];

fn optional(then: Vec<Act>) -> Fake {
    let hello = greeting("8.0.36", OPTIONAL, "mysql_native_password");
    Fake::new([vec![Act::Send(hello), Act::Read, Act::Send(ok(2))], then].concat())
}

#[test]
fn results_without_definitions_are_read_where_a_mysql_leaves_them_out() {
    let result = [packet(1, &[1, 0]), packet(2, ROW), packet(3, END)].concat();
    let fake = optional(vec![Act::Read, Act::Send(result)]);
    let mut client = Client::connect(&fake.options()).unwrap();
    let rows = client.query("SELECT c FROM t").unwrap();
    assert_eq!((rows.columns.len(), rows.text(0, 0).unwrap().as_ref()), (1, "abcd"));
}

#[test]
fn a_binary_result_of_a_statement_without_definitions_cannot_be_read() {
    // A prepare of one parameter and one column whose definitions are left out.
    let prepared = packet(1, &[0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0]);
    let result = [packet(1, &[1, 0]), packet(2, b"\0\0\x04abcd"), packet(3, END)].concat();
    let fake = optional(vec![Act::Read, Act::Send(prepared), Act::Read, Act::Send(result)]);
    let mut client = Client::connect(&fake.options()).unwrap();
    let statement = client.prepare("SELECT c FROM t WHERE a = ?").unwrap();
    assert_eq!((statement.params.len(), statement.columns.len()), (1, 1));
    let error = client.execute_prepared(&statement, &[Value::Int(1)]).unwrap_err().to_string();
    assert!(error.contains("column definitions that were never sent"), "{error}");
}

#[test]
fn an_account_of_the_operating_system_opens_over_the_socket_alone() {
    let server = shared();
    let own = std::process::Command::new("id").arg("-un").output().unwrap();
    let own = String::from_utf8(own.stdout).unwrap().trim().to_owned();
    let mut root = server.client();
    // Root of this server has no password, so a socket opens to it in both ways, also for tests that run beside this one.
    let change = if own == "root" { "ALTER" } else { "CREATE OR REPLACE" };
    root.execute(&format!("{change} USER '{own}'@'localhost' IDENTIFIED VIA unix_socket")).unwrap();
    root.execute("CREATE OR REPLACE USER 'somebody_else'@'%' IDENTIFIED VIA unix_socket").unwrap();
    let mut options = server.options();
    options.user.clone_from(&own);
    for password in [None, Some("of no use")] {
        options.password = password.map(Into::into);
        let mut client = Client::connect(&options).unwrap();
        let user = client.query("SELECT CURRENT_USER()").unwrap();
        assert_eq!(user.scalar().unwrap(), format!("{own}@localhost"));
    }
    let normal = format!("ALTER USER '{own}'@'localhost' IDENTIFIED VIA mysql_native_password USING ''");
    root.execute(&normal).unwrap();
    for mut options in [server.options(), server.tcp()] {
        options.user = "somebody_else".into();
        let error = Client::connect(&options).unwrap_err();
        assert_eq!(error.code(), 1698, "{error}");
        assert!(error.to_string().contains("operating system's user of the same name"), "{error}");
    }
}
