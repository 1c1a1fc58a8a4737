//! The client against a real MariaDB.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use mydyno_wire::capability::Capabilities;
use mydyno_wire::execute::{ExecuteTemplate, Param};
use mydyno_wire::packet::OkPacket;
use mydyno_wire::reply::{Expect, Progress, Reply, ReplyParser, ResultSink, Row};
use mydyno_wire::{Client, Value, WireError, command};

use crate::server::shared;

#[test]
fn the_server_is_known_over_its_socket_and_over_tcp() {
    let server = shared();
    for options in [server.options(), server.tcp()] {
        let mut client = Client::connect(&options).unwrap();
        let version = client.query("SELECT VERSION(), CONNECTION_ID()").unwrap();
        assert_eq!(version.scalar().unwrap(), client.server().text);
        assert!(client.server().is_mariadb());
        assert_eq!(version.number::<u32>(0, 1), Some(client.server().connection_id));
        client.ping().unwrap();
        client.quit().unwrap();
    }
    assert_eq!(server.client().peer_pid(), Some(server.pid));
    assert_eq!(Client::connect(&server.tcp()).unwrap().peer_pid(), None);
}

#[test]
fn a_native_password_opens_and_a_wrong_one_does_not() {
    let server = shared();
    let mut root = server.client();
    root.execute("CREATE OR REPLACE USER native@'%' IDENTIFIED BY 'sesame, öffne dich'").unwrap();
    for mut options in [server.options(), server.tcp()] {
        options.user = "native".into();
        options.password = Some("sesame, öffne dich".into());
        let mut client = Client::connect(&options).unwrap();
        assert_eq!(client.query("SELECT CURRENT_USER()").unwrap().scalar().unwrap(), "native@%");
        options.password = Some("wrong".into());
        let error = Client::connect(&options).unwrap_err();
        assert_eq!(error.code(), 1045);
        assert!(!error.to_string().contains("wrong"), "{error}");
        options.password = None;
        assert!(Client::connect(&options).unwrap_err().to_string().contains("no password was given"));
    }
}

#[test]
fn an_unknown_schema_is_refused_with_its_name() {
    let server = shared();
    let mut options = server.options();
    options.database = Some("no_such_schema".into());
    let error = Client::connect(&options).unwrap_err();
    assert_eq!(error.code(), 1049);
    let text = error.to_string();
    assert!(text.contains("no_such_schema") && text.contains("create the schema"), "{text}");
    let mut client = server.client();
    assert_eq!(client.use_schema("no_such_schema").unwrap_err().code(), 1049);
    client.use_schema("mysql").unwrap();
    assert_eq!(client.query("SELECT DATABASE()").unwrap().scalar().unwrap(), "mysql");
}

#[test]
fn text_and_prepared_results_of_all_common_types_are_the_same() {
    let server = shared();
    let mut client = server.client();
    client.execute("CREATE OR REPLACE DATABASE types").unwrap();
    client.use_schema("types").unwrap();
    client
        .execute(
            "CREATE TABLE t (id INT PRIMARY KEY, a TINYINT, b TINYINT UNSIGNED, c SMALLINT, d MEDIUMINT, e INT \
             UNSIGNED ZEROFILL, f BIGINT, g BIGINT UNSIGNED, h DOUBLE, i DOUBLE(10,3), j DECIMAL(30,10), k DATE, l \
             DATETIME, m DATETIME(6), n TIMESTAMP(3) NULL, o TIME, p TIME(2), q YEAR, r BIT(12), s VARCHAR(50), t \
             BLOB, u ENUM('x','y'), v SET('x','y'), w JSON, x CHAR(3), y FLOAT) CHARACTER SET utf8mb4",
        )
        .unwrap();
    client
        .execute(
            "INSERT INTO t VALUES (1, -128, 255, -32768, -8388608, 42, -9223372036854775808, 18446744073709551615, \
             0.1, 2.5, -12345678901234567890.0123456789, '2026-11-21', '2026-11-21 20:44:03', \
             '1000-01-01 00:00:00.000001', '2020-02-29 12:00:00.120', '-838:59:59', '100:00:00.25', 1901, 2748, \
             'Grüße ☃', X'00FF10', 'y', 'x,y', '{\"a\": 1}', 'ab', 1.5), \
             (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
             NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
             (3, 0, 0, 0, 0, 0, 0, 0, 1e300, -0.0005, 0, '0001-01-01', '0001-01-01', '9999-12-31 23:59:59.999999', \
             '2038-01-19 03:14:07', '00:00:00', '-00:00:01.5', 2155, 0, '', '', 'x', '', '[]', '', -1e-20)",
        )
        .unwrap();
    let text = client.query("SELECT * FROM t ORDER BY id").unwrap();
    assert_eq!(text.len(), 3);
    assert_eq!(text.named(0, "f").unwrap(), "-9223372036854775808");
    assert_eq!(text.named(0, "s").unwrap(), "Grüße ☃");
    assert_eq!(text.rows[0][text.column("t").unwrap()].as_deref(), Some(&[0, 0xFF, 0x10][..]));
    let statement = client.prepare("SELECT * FROM t WHERE id >= ? ORDER BY id").unwrap();
    assert_eq!((statement.params.len(), statement.columns.len()), (1, 26));
    for _ in 0..2 {
        let prepared = client.execute_prepared(&statement, &[Value::Int(0)]).unwrap();
        for (p, t) in prepared.rows.iter().zip(&text.rows) {
            for ((p, t), column) in p.iter().zip(t).zip(&text.columns) {
                let show =
                    |v: &Option<Vec<u8>>| v.as_deref().map(String::from_utf8_lossy).map(|v| v.into_owned());
                assert_eq!(show(p), show(t), "column {}", column.name);
            }
        }
        assert_eq!(prepared.columns, text.columns);
    }
    client.close_statement(&statement).unwrap();
    client.execute("DROP DATABASE types").unwrap();
}

#[test]
fn parameters_of_every_kind_arrive_as_they_were_sent() {
    let server = shared();
    let mut client = server.client();
    let statement = client.prepare("SELECT ?, ?, ?, ?, ?, ?, ?").unwrap();
    let values = [
        Value::Null,
        Value::Int(-7),
        Value::UInt(u64::MAX),
        Value::Double(0.1),
        Value::from("snow ☃"),
        Value::DateTime { year: 2026, month: 11, day: 21, hour: 1, minute: 2, second: 3, micros: 4 },
        Value::Time { negative: true, days: 1, hours: 2, minutes: 3, seconds: 4, micros: 500_000 },
    ];
    let rows = client.execute_prepared(&statement, &values).unwrap();
    let texts: Vec<_> = (0..7).map(|i| rows.text(0, i).map(|t| t.into_owned())).collect();
    let expected = [
        None,
        Some("-7"),
        Some("18446744073709551615"),
        Some("0.1"),
        Some("snow ☃"),
        Some("2026-11-21 01:02:03.000004"),
        Some("-26:03:04.500000"),
    ];
    assert_eq!(texts, expected.map(|t| t.map(str::to_owned)));
    let error = client.execute_prepared(&statement, &values[..2]).unwrap_err().to_string();
    assert!(error.contains("7 parameters, 2 values"), "{error}");
}

#[test]
fn packets_of_more_than_16_mib_go_both_ways() {
    let server = shared();
    let mut client = server.client();
    for length in [(16 << 20) - 10, (16 << 20) - 1, 16 << 20, 20 << 20] {
        let sql = format!("SELECT '{}', 'end'", "x".repeat(length));
        let rows = client.query(&sql).unwrap();
        assert_eq!(rows.rows[0][0].as_ref().unwrap().len(), length);
        assert_eq!(rows.text(0, 1).unwrap(), "end");
    }
    let statement = client.prepare("SELECT LENGTH(?), ?").unwrap();
    let rows =
        client.execute_prepared(&statement, &[Value::Bytes(vec![b'y'; 17 << 20]), Value::Int(1)]).unwrap();
    assert_eq!(rows.number::<usize>(0, 0), Some(17 << 20));
}

#[test]
fn a_result_beyond_the_limit_fails_and_the_server_lives() {
    let server = shared();
    let mut options = server.options();
    options.max_result_bytes = 1 << 20;
    options.database = Some("mysql".into());
    let mut client = Client::connect(&options).unwrap();
    let error = client.query("SELECT REPEAT('x', 1000) FROM mysql.seq_1_to_10000").unwrap_err();
    assert!(matches!(error, WireError::TooLarge { .. }), "{error}");
    assert!(client.ping().is_err());
    server.client().execute("SELECT REPEAT('x', 1000) FROM mysql.seq_1_to_10000").unwrap();
}

#[test]
fn several_results_of_one_text_are_read_in_order() {
    let server = shared();
    let mut options = server.options();
    options.multi_statements = true;
    let mut client = Client::connect(&options).unwrap();
    let results = client.query_all("SELECT 1; DO 2; SELECT 3, 4 UNION SELECT 5, 6").unwrap();
    assert_eq!(results.len(), 3);
    assert_eq!((results[0].len(), results[1].columns.len(), results[2].len()), (1, 0, 2));
    assert_eq!(client.query("DO 1; SELECT 7; SELECT 8").unwrap().scalar().unwrap(), "7");
    let error = client.query("SELECT 1; SELECT nonsense").unwrap_err();
    assert_eq!(error.code(), 1054);
    client.ping().unwrap();
    let mut single = server.client();
    assert_eq!(single.query("SELECT 1; SELECT 2").unwrap_err().code(), 1064);
}

#[test]
fn procedures_give_their_results_as_text_and_prepared() {
    let server = shared();
    let mut client = server.client();
    client.execute("CREATE OR REPLACE DATABASE procedures").unwrap();
    client.use_schema("procedures").unwrap();
    client.execute("CREATE PROCEDURE p(n INT) BEGIN SELECT n; SELECT n + 1, n + 2; END").unwrap();
    assert_eq!(client.query_all("CALL p(1)").unwrap().len(), 3);
    let statement = client.prepare("CALL p(?)").unwrap();
    for n in [5, 9] {
        let rows = client.execute_prepared(&statement, &[Value::Int(n)]).unwrap();
        assert_eq!(rows.number::<i64>(0, 0), Some(n));
    }
    client.execute("DROP DATABASE procedures").unwrap();
}

#[test]
fn changed_columns_are_seen_by_a_statement_that_was_prepared_before() {
    let server = shared();
    let mut client = server.client();
    client.execute("CREATE OR REPLACE DATABASE changing").unwrap();
    client.use_schema("changing").unwrap();
    client.execute("CREATE TABLE t (a INT)").unwrap();
    client.execute("INSERT INTO t VALUES (1)").unwrap();
    assert!(client.session().capabilities.has(Capabilities::MARIADB_CACHE_METADATA));
    let statement = client.prepare("SELECT * FROM t").unwrap();
    assert_eq!(client.execute_prepared(&statement, &[]).unwrap().columns.len(), 1);
    client.execute("ALTER TABLE t ADD b VARCHAR(10) DEFAULT 'new'").unwrap();
    for _ in 0..2 {
        let rows = client.execute_prepared(&statement, &[]).unwrap();
        assert_eq!(
            (rows.number::<i64>(0, 0), rows.named(0, "b").unwrap().into_owned()),
            (Some(1), "new".into())
        );
    }
    client.execute("DROP DATABASE changing").unwrap();
}

#[test]
fn a_reset_session_forgets_its_variables() {
    let server = shared();
    let mut client = server.client();
    client.execute("SET @x = 1").unwrap();
    client.reset().unwrap();
    assert_eq!(client.query("SELECT @x").unwrap().scalar(), None);
}

#[test]
fn counts_of_changed_rows_ids_and_warnings_are_given() {
    let server = shared();
    let mut client = server.client();
    client.execute("CREATE OR REPLACE DATABASE counts").unwrap();
    client.use_schema("counts").unwrap();
    client.execute("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a TINYINT)").unwrap();
    let done = client.execute("INSERT INTO t (a) VALUES (1), (2), (3)").unwrap();
    assert_eq!((done.affected_rows, done.last_insert_id), (3, 1));
    let done = client.execute("INSERT IGNORE INTO t (a) VALUES (1000)").unwrap();
    assert_eq!((done.affected_rows, done.last_insert_id, done.warnings), (1, 4, 1));
    client.execute("DROP DATABASE counts").unwrap();
}

#[test]
fn many_rows_are_inserted_in_one_exchange() {
    let server = shared();
    let mut client = server.client();
    client.execute("CREATE TEMPORARY TABLE mysql.bulk (a INT, b VARCHAR(20))").unwrap();
    let statement = client.prepare("INSERT INTO mysql.bulk VALUES (?, ?)").unwrap();
    let mut rows: Vec<Vec<Value>> = (0..1000).map(|i| vec![Value::Int(i), Value::from("text")]).collect();
    rows[7] = vec![Value::Null, Value::Null];
    assert_eq!(client.execute_bulk(&statement, &rows).unwrap().affected_rows, 1000);
    let sums =
        client.query("SELECT COUNT(*), SUM(a), SUM(a IS NULL), COUNT(DISTINCT b) FROM mysql.bulk").unwrap();
    let numbers: Vec<i64> = (0..4).map(|i| sums.number(0, i).unwrap()).collect();
    assert_eq!(numbers, [1000, 999 * 1000 / 2 - 7, 1, 1]);
    rows[8] = vec![Value::from("not a number"), Value::Null];
    let error = client.execute_bulk(&statement, &rows).unwrap_err().to_string();
    assert!(error.contains("one type a column"), "{error}");
    client.ping().unwrap();
}

#[test]
fn a_killed_connection_says_so() {
    let server = shared();
    let mut victim = server.client();
    server.client().execute(&format!("KILL {}", victim.server().connection_id)).unwrap();
    let error = loop {
        // The server ends it when it next looks at it.
        if let Err(error) = victim.ping() {
            break error;
        }
    };
    assert!(matches!(error.code(), 2013 | 1927 | 1317), "{error}");
}

/// One command over a socket that the test drives itself, `step` bytes at a time.
fn drive(
    stream: &mut UnixStream,
    parser: &mut ReplyParser,
    packet: &[u8],
    expect: Expect,
    step: usize,
) -> Reply {
    parser.start(expect);
    stream.write_all(packet).unwrap();
    let mut buffer = vec![0; step];
    loop {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "closed");
        if let Progress::Done(reply) = parser.feed(&buffer[..count]).unwrap() {
            return reply;
        }
    }
}

#[test]
fn the_pieces_without_io_drive_a_socket_that_was_taken_over() {
    let server = shared();
    for (cache_metadata, step) in [(true, 1), (true, 65_536), (false, 3), (false, 65_536)] {
        let mut options = server.options();
        options.cache_metadata = cache_metadata;
        let mut client = Client::connect(&options).unwrap();
        client
            .execute("CREATE TEMPORARY TABLE mysql.w (id INT PRIMARY KEY, c CHAR(120), n BIGINT UNSIGNED)")
            .unwrap();
        let select = client.prepare("SELECT c FROM mysql.w WHERE id BETWEEN ? AND ?").unwrap();
        let insert = client.prepare("INSERT INTO mysql.w VALUES (?, ?, ?)").unwrap();
        let (fd, session) = client.into_parts().unwrap();
        let mut stream = UnixStream::from(fd);
        let mut parser = ReplyParser::new(&session);
        let mut template = ExecuteTemplate::new(insert.id, &[Param::Int, Param::Bytes(120), Param::UInt]);
        for id in 0..10 {
            template.set_i64(0, id);
            template.set_bytes(1, &[b'a' + id as u8; 120]);
            template.set_u64(2, u64::MAX);
            let reply = drive(&mut stream, &mut parser, template.packet(), Expect::Prepared, step);
            assert_eq!((reply.affected_rows, reply.error), (1, None));
            template.types_are_known();
        }
        template.set_null(2);
        template.set_i64(0, 10);
        assert_eq!(
            drive(&mut stream, &mut parser, template.packet(), Expect::Prepared, step).affected_rows,
            1
        );
        let reply = drive(&mut stream, &mut parser, template.packet(), Expect::Prepared, step);
        assert_eq!(reply.error.unwrap().code, 1062);
        let mut template = ExecuteTemplate::new(select.id, &[Param::Int, Param::Int]);
        for last in [0, 10, 99] {
            template.set_i64(0, 0);
            template.set_i64(1, last);
            let reply = drive(&mut stream, &mut parser, template.packet(), Expect::Prepared, step);
            assert_eq!(reply.rows, (last as u64 + 1).min(11));
            template.types_are_known();
        }
        let mut out = Vec::new();
        command::query(&mut out, b"SELECT COUNT(*), SUM(n IS NULL), MAX(n), MIN(c) FROM mysql.w");
        let reply = drive(&mut stream, &mut parser, &out, Expect::Text, step);
        assert_eq!((reply.rows, reply.error), (1, None));
        out.clear();
        command::query(&mut out, b"SELECT nothing");
        assert_eq!(drive(&mut stream, &mut parser, &out, Expect::Text, step).error.unwrap().code, 1054);
        out.clear();
        command::ping(&mut out);
        assert_eq!(drive(&mut stream, &mut parser, &out, Expect::Text, step).error, None);
    }
}

/// Rows, results and the largest number of bytes of a row.
#[derive(Default)]
struct Counted {
    results: usize,
    rows: u64,
    cells: Vec<Vec<String>>,
}

impl ResultSink for Counted {
    fn row(&mut self, row: Row<'_>) -> Result<(), WireError> {
        self.rows += 1;
        if self.rows <= 10 {
            let mut cells = Vec::new();
            row.texts(|cell| cells.push(cell.map_or("NULL".into(), String::from_utf8_lossy).into_owned()))?;
            self.cells.push(cells);
        }
        Ok(())
    }

    fn end(&mut self, _: &OkPacket) {
        self.results += 1;
    }
}

#[test]
fn rows_of_any_number_of_results_are_streamed() {
    let server = shared();
    let mut options = server.options();
    options.multi_statements = true;
    // Less than the rows take, so that they cannot be kept.
    options.max_result_bytes = 64 << 10;
    let mut client = Client::connect(&options).unwrap();
    let mut counted = Counted::default();
    client.stream(b"SELECT seq, 'x' FROM mysql.seq_1_to_100000; DO 1; SELECT NULL", &mut counted).ok();
    if counted.rows == 0 {
        // The server has no sequence engine.
        let sql = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT i, 'x' FROM n; DO 1; SELECT NULL";
        client.execute("SET max_recursive_iterations = 200000").unwrap();
        client.stream(sql.as_bytes(), &mut counted).unwrap();
    }
    assert_eq!((counted.results, counted.rows), (3, 100_001));
    assert_eq!(counted.cells[1], ["2", "x"]);

    let prepared = client.prepare("SELECT ? + 1, 'text', NULL").unwrap();
    let mut counted = Counted::default();
    // The server sends definitions with the first execution alone.
    for number in [41, 1] {
        client.stream_prepared(&prepared, &[Value::Int(number)], &mut counted).unwrap();
    }
    assert_eq!(counted.cells, [["42", "text", "NULL"], ["2", "text", "NULL"]]);
    let failed = client.stream(b"SELECT 1; SELECT * FROM no.such", &mut counted);
    assert_eq!((failed.unwrap_err().code(), counted.rows), (1146, 3));
    client.ping().unwrap();
}
