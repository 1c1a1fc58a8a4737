//! The client against servers that refuse or misbehave.

use std::time::Duration;

use mydyno_wire::{Client, ConnectOptions, Endpoint, WireError};

use crate::fake::{Act, Fake, MYSQL_8, error, greeting, ok, packet, welcome};

fn connect_error(script: Vec<Act>, change: impl FnOnce(&mut ConnectOptions)) -> WireError {
    let fake = Fake::new(script);
    let mut options = fake.options();
    change(&mut options);
    Client::connect(&options).unwrap_err()
}

fn query_error(answer: Vec<u8>) -> WireError {
    let fake = Fake::new(welcome(vec![Act::Read, Act::Send(answer), Act::Hang]));
    let mut options = fake.options();
    options.max_result_bytes = 1 << 20;
    let mut client = Client::connect(&options).unwrap();
    let error = client.query("SELECT 1").unwrap_err();
    if error.server_error().is_none() {
        assert!(client.query("SELECT 1").is_err(), "a connection that failed must not be used again");
    }
    error
}

#[test]
fn a_server_with_too_many_connections_names_the_way_out() {
    let e = connect_error(vec![Act::Send(error(0, 1040, "Too many connections"))], |_| {});
    assert_eq!(e.code(), 1040);
    let text = e.to_string();
    assert!(text.contains("Too many connections") && text.contains("SET GLOBAL max_connections"), "{text}");
}

#[test]
fn a_refused_password_names_user_server_and_the_options_that_give_one() {
    let refusal = error(2, 1045, "#28000Access denied for user 'app'@'localhost'");
    let script =
        vec![Act::Send(greeting("8.0.36", MYSQL_8, "mysql_native_password")), Act::Read, Act::Send(refusal)];
    let text = connect_error(script.clone(), |_| {}).to_string();
    for part in ["'app'", "/s", "no password was given", "--password-file", "MYSQL_PWD"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = connect_error(script, |o| o.password = Some("hunter2".into())).to_string();
    assert!(text.contains("check the user and the password") && !text.contains("hunter2"), "{text}");
}

#[test]
fn an_unknown_plugin_is_refused_by_name() {
    let script = vec![
        Act::Send(greeting("8.0.36", MYSQL_8, "caching_sha2_password")),
        Act::Read,
        Act::Send(packet(2, b"\xfeauthentication_kerberos_client\0data")),
    ];
    let text = connect_error(script, |_| {}).to_string();
    assert!(text.contains("authentication_kerberos_client") && text.contains("ALTER USER"), "{text}");
}

#[test]
fn a_switch_uses_the_scramble_of_the_switch_packet() {
    let fake = Fake::new(vec![
        Act::Send(greeting("8.0.36", MYSQL_8, "a_decoy_plugin")),
        Act::Read,
        Act::Send(packet(2, b"\xfemysql_native_password\0ABCDEFGHIJKLMNOPQRST\0")),
        Act::Read,
        Act::Send(ok(4)),
    ]);
    let mut options = fake.options();
    options.password = Some("secret".into());
    let client = Client::connect(&options).unwrap();
    drop(client);
    let expected = mydyno_wire::auth::native_scramble(b"secret", b"ABCDEFGHIJKLMNOPQRST");
    assert_eq!(fake.received()[1], expected);
}

#[test]
fn full_authentication_sends_the_password_in_clear_over_a_socket_only_when_asked() {
    let fake = Fake::new(vec![
        Act::Send(greeting("8.0.36", MYSQL_8, "caching_sha2_password")),
        Act::Read,
        Act::Send(packet(2, b"\x01\x04")),
        Act::Read,
        Act::Send(ok(4)),
    ]);
    let mut options = fake.options();
    options.password = Some("secret".into());
    drop(Client::connect(&options).unwrap());
    let received = fake.received();
    assert!(!received[0].windows(6).any(|w| w == b"secret"), "the first answer must not hold the password");
    assert_eq!(received[1], b"secret\0");
}

/// The client's answer to a server that requests `plugin` over TCP without TLS, or over a socket.
fn switched_to(plugin: &str, more: Vec<Act>) -> (Result<Client, WireError>, Vec<Vec<u8>>) {
    let switch = [b"\xfe", plugin.as_bytes(), b"\0ABCDEFGHIJKLMNOPQRST\0"].concat();
    let mut script = vec![
        Act::Send(greeting("8.0.36", MYSQL_8, "mysql_native_password")),
        Act::Read,
        Act::Send(packet(2, &switch)),
        Act::Read,
    ];
    script.extend(more);
    let fake = Fake::new(script);
    let mut options = fake.options();
    options.password = Some("secret".into());
    let result = Client::connect(&options);
    let result = result.map(|client| {
        let mut client = client;
        let _ = client.ping();
        client
    });
    (result, fake.received())
}

#[test]
fn sha256_asks_for_the_key_even_over_a_socket() {
    let (result, received) = switched_to("sha256_password", vec![Act::Send(packet(4, b"\x01no key"))]);
    assert!(result.unwrap_err().to_string().contains("not an RSA key"));
    assert_eq!(received[1], [1]);
}

#[test]
fn a_password_in_clear_goes_over_a_socket() {
    let (result, received) = switched_to("mysql_clear_password", vec![Act::Send(ok(4))]);
    assert!(result.is_ok());
    assert_eq!(received[1], b"secret\0");
}

#[test]
fn decoys_with_data_that_do_not_fit_are_errors() {
    for (plugin, part) in [("client_ed25519", "32 bytes"), ("parsec", "32 bytes")] {
        let text = switched_to(plugin, vec![]).0.unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_salt_that_would_waste_time_is_refused() {
    let nonce = [&b"\xfeparsec\0"[..], &[7; 32]].concat();
    for salt in [&b"P\x1e012345678901234567"[..], b"Q\x00012345678901234567", b"P\x00"] {
        let script = vec![
            Act::Send(greeting("11.8.1-MariaDB", MYSQL_8, "mysql_native_password")),
            Act::Read,
            Act::Send(packet(2, &nonce)),
            Act::Read,
            Act::Send(packet(4, salt)),
        ];
        let e = connect_error(script, |o| o.password = Some("secret".into()));
        assert!(matches!(e, WireError::Protocol { .. }), "{e}");
    }
}

#[test]
fn an_end_of_file_while_authenticating_is_an_answer() {
    let script = vec![Act::Send(greeting("8.0.36", MYSQL_8, "mysql_native_password")), Act::Read];
    let e = connect_error(script, |_| {});
    assert!(matches!(e, WireError::Closed { state: "authenticating", .. }), "{e}");
    let e = connect_error(vec![], |_| {});
    assert!(matches!(e, WireError::Closed { state: "waiting for the greeting", .. }), "{e}");
}

#[test]
fn a_server_that_says_nothing_is_given_up_at_the_deadline() {
    let e = connect_error(vec![Act::Hang], |o| o.connect_timeout = Duration::from_millis(200));
    assert!(matches!(e, WireError::Timeout { during: "waiting for the greeting", .. }), "{e}");
}

#[test]
fn methods_of_authentication_without_an_end_are_refused_after_eight() {
    let switch = |number: u8| packet(number, b"\xfemysql_native_password\0ABCDEFGHIJKLMNOPQRST\0");
    let asked = |times: u8| (1..=times).flat_map(move |i| [Act::Send(switch(2 * i)), Act::Read]);
    let hello = || vec![Act::Send(greeting("11.4.5-MariaDB", MYSQL_8, "mysql_native_password")), Act::Read];
    let fake = Fake::new(hello().into_iter().chain(asked(8)).chain([Act::Send(ok(18))]).collect());
    Client::connect(&fake.options()).unwrap();
    let e = connect_error(hello().into_iter().chain(asked(9)).collect(), |_| {});
    assert!(e.to_string().contains("more than 8 methods"), "{e}");
}

#[test]
fn a_timeout_longer_than_the_clock_counts_is_no_reason_to_fail() {
    let fake = Fake::new(welcome(vec![Act::Read, Act::Send(ok(1))]));
    let mut options = fake.options();
    options.connect_timeout = Duration::MAX;
    options.read_timeout = Some(Duration::MAX);
    Client::connect(&options).unwrap().ping().unwrap();
}

#[test]
fn the_local_files_capability_is_never_set() {
    let fake = Fake::new(welcome(vec![]));
    drop(Client::connect(&fake.options()).unwrap());
    let response = &fake.received()[0];
    assert_eq!(u32::from_le_bytes([response[0], response[1], response[2], response[3]]) & 0x80, 0);
}

#[test]
fn a_request_for_a_local_file_ends_the_connection() {
    let e = query_error(packet(1, b"\xfb/etc/passwd"));
    assert!(e.to_string().contains("local files are never sent"), "{e}");
}

#[test]
fn a_request_for_a_local_file_gets_no_byte_of_an_answer() {
    let fake = Fake::new(welcome(vec![Act::Read, Act::Send(packet(1, b"\xfb/etc/passwd")), Act::Read]));
    let mut client = Client::connect(&fake.options()).unwrap();
    assert!(client.execute("SELECT 1").is_err());
    drop(client);
    assert_eq!(fake.received().len(), 2, "the handshake response and the query, nothing else");
}

#[test]
fn garbage_is_an_error_that_names_packet_and_state() {
    let cases: [(&[u8], &str); 6] = [
        (b"\x05\0\0\x01\xfe\xff\xff\xff\xff", "result header"),
        (b"\x01\0\0\x01\0", "OK"),
        (b"\x01\0\0\x01\x01\x01\0\0\x05d", "out of sequence"),
        (b"\0\0\0\x01", "result header"),
        (b"\x01\0\0\x01\x01\x02\0\0\x02\x03d", "column definition"),
        (b"\x02\0\0\x01\xff\x01", "error"),
    ];
    for (answer, packet) in cases {
        let e = query_error(answer.to_vec());
        assert!(matches!(e, WireError::Protocol { packet: p, .. } if p == packet), "{answer:?}: {e}");
    }
}

#[test]
fn an_endless_result_stops_at_the_memory_limit() {
    let column = b"\x03def\0\0\0\x01c\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0";
    let head = [packet(1, &[1]), packet(2, column)].concat();
    // Rows that follow each other for as long as anybody listens: 256 frames, so that numbers go round.
    let rows: Vec<u8> =
        (3..=258).flat_map(|i| packet((i % 256) as u8, &[4, b'a', b'b', b'c', b'd'])).collect();
    let fake = Fake::new(welcome(vec![Act::Read, Act::Send(head), Act::Repeat(rows)]));
    let mut options = fake.options();
    options.max_result_bytes = 1 << 20;
    let e = Client::connect(&options).unwrap().query("SELECT 1").unwrap_err();
    assert!(matches!(e, WireError::TooLarge { limit_bytes: 1_048_576, .. }), "{e}");
}

#[test]
fn a_packet_beyond_the_limit_is_refused_from_its_header() {
    let fake = Fake::new(welcome(vec![Act::Read, Act::Send(vec![0xFF, 0xFF, 0xFF, 1]), Act::Hang]));
    let mut options = fake.options();
    options.max_packet_bytes = 1 << 20;
    let e = Client::connect(&options).unwrap().query("SELECT 1").unwrap_err();
    assert!(matches!(e, WireError::TooLarge { limit_bytes: 1_048_576, .. }), "{e}");
}

#[test]
fn an_answer_that_trickles_is_given_up_at_the_deadline_and_one_in_time_is_read() {
    let fake = Fake::new(welcome(vec![
        Act::Read,
        Act::Trickle(ok(1)),
        Act::Read,
        Act::Send(vec![7, 0, 0]),
        Act::Hang,
    ]));
    let mut client = Client::connect(&fake.options()).unwrap();
    assert_eq!(client.execute("DO 1").unwrap().status, 2);
    client.set_read_timeout(Some(Duration::from_millis(300)));
    let e = client.execute("DO 1").unwrap_err();
    assert!(matches!(e, WireError::Timeout { .. }), "{e}");
}

#[test]
fn an_error_of_the_server_leaves_the_connection_usable() {
    let fake = Fake::new(welcome(vec![
        Act::Read,
        Act::Send(error(1, 1213, "#40001Deadlock")),
        Act::Read,
        Act::Send(ok(1)),
    ]));
    let mut client = Client::connect(&fake.options()).unwrap();
    let e = client.execute("UPDATE t").unwrap_err();
    let e = e.server_error().unwrap();
    assert_eq!((e.code, e.sqlstate.as_str(), e.message.as_str()), (1213, "40001", "Deadlock"));
    client.execute("DO 1").unwrap();
}

#[test]
fn a_missing_socket_a_refused_port_and_an_unknown_host_name_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |endpoint| Client::connect(&ConnectOptions::new(endpoint, "app")).unwrap_err();
    let e = fails(Endpoint::Unix(folder.path().join("none.sock")));
    assert!(e.to_string().contains("start the server") && e.code() == 2002, "{e}");
    let e = fails(Endpoint::Unix("/".repeat(200).into()));
    assert!(e.to_string().contains("107"), "{e}");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let e = fails(Endpoint::Tcp { host: "127.0.0.1".into(), port });
    assert!(e.to_string().contains("no server listens there") && e.code() == 2003, "{e}");
    let e = fails(Endpoint::Tcp { host: "no-such-host.invalid".into(), port });
    assert!(e.to_string().contains("there is no such host") && e.code() == 2005, "{e}");
}

#[test]
fn a_session_cut_at_any_byte_ends_in_an_error() {
    let column = b"\x03def\0\0\0\x01c\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0";
    let hello = greeting("8.0.36", MYSQL_8, "mysql_native_password");
    let answer =
        [packet(1, &[1]), packet(2, column), packet(3, b"\x04abcd"), packet(4, &[0xFE, 0, 0, 2, 0, 0, 0])]
            .concat();
    for cut in 0..hello.len() {
        connect_error(vec![Act::Send(hello[..cut].to_vec())], |_| {});
    }
    for cut in 0..7 + 4 {
        let script = vec![Act::Send(hello.clone()), Act::Read, Act::Send(ok(2)[..cut].to_vec())];
        connect_error(script, |_| {});
    }
    for cut in 0..answer.len() {
        let fake = Fake::new(welcome(vec![Act::Read, Act::Send(answer[..cut].to_vec())]));
        let mut client = Client::connect(&fake.options()).unwrap();
        let e = client.query("SELECT c").unwrap_err();
        assert!(matches!(e, WireError::Closed { .. }), "cut at {cut}: {e}");
    }
    let fake = Fake::new(welcome(vec![Act::Read, Act::Send(answer)]));
    let rows = Client::connect(&fake.options()).unwrap().query("SELECT c").unwrap();
    assert_eq!(rows.named(0, "C").unwrap(), "abcd");
}

#[test]
fn an_ok_packet_with_a_wrong_number_is_taken_and_counted() {
    // As the server of npm's mysql2 sends it.
    let fake = Fake::new(welcome(vec![Act::Read, Act::Send(ok(3)), Act::Read, Act::Send(ok(1))]));
    let mut client = Client::connect(&fake.options()).unwrap();
    client.execute("DO 1").unwrap();
    assert_eq!(client.misnumbered_answers(), 1);
    client.execute("DO 1").unwrap();
    assert_eq!(client.misnumbered_answers(), 1);
}

#[test]
fn rows_with_wrong_numbers_are_taken_and_counted() {
    // The server of npm's mysql2 goes on counting from one answer to the next.
    let column = b"\x03def\0\0\0\x01c\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0";
    let frames: [&[u8]; 4] = [&[1], column, b"\x02ab", &[0xFE, 0, 0, 2, 0, 0, 0]];
    let answer = |from: u8| {
        let numbered = frames.iter().zip(from..);
        numbered.flat_map(|(payload, number)| packet(number, payload)).collect::<Vec<u8>>()
    };
    let acts = vec![Act::Read, Act::Send(answer(10)), Act::Read, Act::Send(answer(1))];
    let fake = Fake::new(welcome(acts));
    let mut client = Client::connect(&fake.options()).unwrap();
    for _ in 0..2 {
        assert_eq!(client.query("SELECT c").unwrap().named(0, "c").unwrap(), "ab");
    }
    assert_eq!(client.misnumbered_answers(), 1);
}

#[test]
fn a_message_of_megabytes_is_cut_and_one_that_steers_a_terminal_is_shown() {
    let long = [b"\xff\x15\x04".to_vec(), vec![b'x'; 600_000]].concat();
    let text = query_error(packet(1, &long)).to_string();
    assert!(text.ends_with("x … cut") && text.len() < 5_000, "{}", text.len());
    let text = query_error(error(1, 1064, "a\u{1b}[31m\u{202e}\u{2028}b")).to_string();
    assert!(text.contains(r"a\u{1b}[31m\u{202e}\u{2028}b"), "{text}");
    let text = query_error(error(1, 1064, "near 'x\nmydyno: all is well'")).to_string();
    assert!(text.ends_with("near 'x mydyno: all is well'"), "{text}");
}
