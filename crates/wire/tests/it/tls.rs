//! Encryption and compression against a real MariaDB, and servers that only pretend.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use mydyno_wire::reply::{Expect, Progress, ReplyParser};
use mydyno_wire::{Client, Compression, ConnectOptions, Endpoint, Value, WireError, command};
use mydyno_wire::{TlsMode, capability::Capabilities};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::fake::{Act, Fake, MYSQL_8, greeting, ok, packet};
use crate::server::{Server, shared};

fn tls(server: &Server, mode: TlsMode) -> ConnectOptions {
    let mut options = server.tcp();
    options.tls.mode = mode;
    options.tls.ca = Some(server.certificates.path("ca.pem"));
    options
}

fn cipher(client: &mut Client) -> String {
    client.query("SHOW STATUS LIKE 'Ssl_cipher'").unwrap().text(0, 1).unwrap().into_owned()
}

#[test]
fn each_mode_encrypts_as_it_says() {
    let server = shared();
    for mode in [TlsMode::Preferred, TlsMode::Required, TlsMode::VerifyCa, TlsMode::VerifyIdentity] {
        let mut client = Client::connect(&tls(&server, mode)).unwrap();
        assert!(!cipher(&mut client).is_empty(), "{mode:?}");
        let agreed = client.session().tls.clone().unwrap();
        assert!(agreed.starts_with("TLSv1."), "{agreed}");
        let rows = client.query("SELECT REPEAT('x', 5000000), 2").unwrap();
        assert_eq!((rows.rows[0][0].as_ref().unwrap().len(), rows.number::<i64>(0, 1)), (5_000_000, Some(2)));
    }
    let mut client = Client::connect(&tls(&server, TlsMode::Disabled)).unwrap();
    assert_eq!((cipher(&mut client), client.session().tls.clone()), (String::new(), None));
    let mut socket = server.options();
    socket.tls.mode = TlsMode::Preferred;
    assert_eq!(cipher(&mut Client::connect(&socket).unwrap()), "");
    socket.tls.mode = TlsMode::Required;
    assert_ne!(cipher(&mut Client::connect(&socket).unwrap()), "");
}

#[test]
fn a_certificate_of_another_authority_or_for_another_name_is_refused() {
    let server = shared();
    let mut options = tls(&server, TlsMode::VerifyCa);
    options.tls.ca = Some(server.certificates.path("other-ca.pem"));
    let error = Client::connect(&options).unwrap_err();
    assert!(
        matches!(error, WireError::Tls { .. }) && error.to_string().contains("authority of --ssl-ca"),
        "{error}"
    );
    // The certificate is for 127.0.0.1 alone.
    let mut options = tls(&server, TlsMode::VerifyIdentity);
    options.endpoint = Endpoint::Tcp { host: "localhost".into(), port: server.port };
    let error = Client::connect(&options).unwrap_err();
    assert!(error.to_string().contains("for another host"), "{error}");
    options.tls.mode = TlsMode::VerifyCa;
    Client::connect(&options).unwrap();
}

#[test]
fn a_client_certificate_opens_an_account_that_wants_one() {
    let server = shared();
    server.client().execute("CREATE OR REPLACE USER x509@'%' IDENTIFIED BY 'pw' REQUIRE X509").unwrap();
    let mut options = tls(&server, TlsMode::Required);
    options.user = "x509".into();
    options.password = Some("pw".into());
    assert_eq!(Client::connect(&options).unwrap_err().code(), 1045);
    options.tls.cert = Some(server.certificates.path("client.pem"));
    options.tls.key = Some(server.certificates.path("client.key"));
    Client::connect(&options).unwrap();
    options.tls.key = Some(server.certificates.path("server.key"));
    assert!(Client::connect(&options).unwrap_err().to_string().contains("do not go together"));
    options.tls.key = Some("/none.key".into());
    assert!(Client::connect(&options).unwrap_err().to_string().contains("/none.key"));
}

#[test]
fn files_are_read_for_the_first_connection_and_hold_for_all_clones() {
    let server = shared();
    let folder = tempfile::tempdir().unwrap();
    let mut options = tls(&server, TlsMode::VerifyCa);
    let ca = folder.path().join("ca.pem");
    std::fs::copy(server.certificates.path("ca.pem"), &ca).unwrap();
    options.tls.ca = Some(ca.clone());
    let clone = options.clone();
    Client::connect(&options).unwrap();
    std::fs::remove_file(&ca).unwrap();
    Client::connect(&clone).unwrap();
    // Other files are other files.
    let mut other = clone.clone();
    other.tls.ca = Some(folder.path().join("none.pem"));
    assert!(Client::connect(&other).unwrap_err().to_string().contains("none.pem"));
}

/// A server that greets, and over TLS 1.3 requires a client certificate. Returns the number of connections.
fn wants_certificates(server: &crate::server::Server) -> (u16, std::thread::JoinHandle<usize>) {
    let read = |name: &str| std::fs::read(server.certificates.path(name)).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&read("ca.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(&read("server.pem")).unwrap()],
            PrivateKeyDer::from_pem_slice(&read("server.key")).unwrap(),
        )
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let mut count = 0;
        loop {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 36];
            let hello = greeting("8.0.36", MYSQL_8 | Capabilities::SSL.0 as u32, "mysql_native_password");
            if stream.write_all(&hello).and_then(|()| stream.read_exact(&mut request)).is_err() {
                return count;
            }
            count += 1;
            let mut connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let _ = rustls::Stream::new(&mut connection, &mut stream).read(&mut [0; 100]);
            let mut last = Vec::new();
            while connection.wants_write() {
                let _ = connection.write_tls(&mut last);
            }
            let _ = stream.write_all(&last);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    (port, thread)
}

#[test]
fn a_server_that_misses_a_certificate_late_says_what_to_do_and_is_not_asked_in_clear() {
    let server = shared();
    let (port, thread) = wants_certificates(&server);
    for mode in [TlsMode::Required, TlsMode::Preferred] {
        let mut options = ConnectOptions::new(Endpoint::Tcp { host: "127.0.0.1".into(), port }, "app");
        options.tls.mode = mode;
        options.password = Some("hunter2".into());
        let error = Client::connect(&options).unwrap_err();
        assert!(matches!(error, WireError::Tls { .. }), "{mode:?}: {error}");
        let text = error.to_string();
        assert!(text.contains("--ssl-cert=FILE --ssl-key=FILE") && text.contains("127.0.0.1"), "{text}");
    }
    // A connection that says nothing ends the server.
    drop(TcpStream::connect(("127.0.0.1", port)).unwrap());
    assert_eq!(thread.join().unwrap(), 2, "nobody came back without TLS");
}

#[test]
fn a_server_without_tls_is_refused_when_tls_was_asked_for() {
    let no_tls = MYSQL_8 & !(Capabilities::SSL.0 as u32);
    for mode in [TlsMode::Required, TlsMode::VerifyCa] {
        let fake = Fake::new(vec![Act::Send(greeting("5.5.9", no_tls, "mysql_native_password")), Act::Read]);
        let mut options = fake.options();
        options.tls.mode = mode;
        options.password = Some("hunter2".into());
        let error = Client::connect(&options).unwrap_err();
        assert!(error.to_string().contains("does not offer it"), "{error}");
        assert!(fake.received().is_empty(), "nothing may be sent to such a server");
    }
}

#[test]
fn a_server_whose_tls_is_no_tls_gets_no_password() {
    for answer in
        [b"\x15\x03\x01\x00\x02\x02\x46".to_vec(), b"garbage that is not a TLS record".to_vec(), Vec::new()]
    {
        let fake = Fake::new(vec![
            Act::Send(greeting("5.6.51", MYSQL_8 | Capabilities::SSL.0 as u32, "mysql_native_password")),
            Act::Read,
            Act::Send(answer),
        ]);
        let mut options = fake.options();
        options.tls.mode = TlsMode::Required;
        options.password = Some("hunter2".into());
        let error = Client::connect(&options).unwrap_err();
        assert!(matches!(error, WireError::Tls { .. }), "{error}");
        assert!(error.to_string().contains("older than 1.2"), "{error}");
        let received = fake.received();
        assert_eq!(received[0].len(), 32, "only the request for TLS, without user and password");
    }
}

#[test]
fn preferred_does_without_tls_where_the_server_has_only_what_is_too_old() {
    let with_tls = greeting("5.6.51", MYSQL_8 | Capabilities::SSL.0 as u32, "mysql_native_password");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        first.write_all(&with_tls).unwrap();
        let mut request = [0; 36];
        first.read_exact(&mut request).unwrap();
        // An alert: protocol version.
        first.write_all(b"\x15\x03\x01\x00\x02\x02\x46").unwrap();
        let (mut second, _) = listener.accept().unwrap();
        second.write_all(&with_tls).unwrap();
        let mut response = [0; 1000];
        assert!(second.read(&mut response).unwrap() > 36, "a whole response, not a request for TLS");
        second.write_all(&ok(2)).unwrap();
        let _ = second.read(&mut response);
    });
    let mut options = ConnectOptions::new(Endpoint::Tcp { host: "127.0.0.1".into(), port }, "app");
    options.tls.mode = TlsMode::Preferred;
    let client = Client::connect(&options).unwrap();
    assert_eq!(client.session().tls, None);
    drop(client);
    server.join().unwrap();
}

#[test]
fn a_password_in_clear_is_refused_where_others_could_read_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&greeting("8.0.36", MYSQL_8, "mysql_native_password")).unwrap();
        let mut sent = vec![0; 1000];
        let _ = stream.read(&mut sent).unwrap();
        stream.write_all(&packet(2, b"\xfemysql_clear_password\0")).unwrap();
        stream.read(&mut sent).unwrap_or(0)
    });
    let mut options = ConnectOptions::new(Endpoint::Tcp { host: "127.0.0.1".into(), port }, "app");
    options.password = Some("hunter2".into());
    let error = Client::connect(&options).unwrap_err();
    assert!(matches!(error, WireError::Auth { .. }) && error.to_string().contains("Unix socket"), "{error}");
    assert_eq!(server.join().unwrap(), 0, "nothing may follow");
}

#[test]
fn bytes_in_clear_behind_the_greeting_do_not_pass_into_tls() {
    let hello = greeting("8.0.36", MYSQL_8 | Capabilities::SSL.0 as u32, "mysql_native_password");
    let fake = Fake::new(vec![Act::Send([hello, ok(2)].concat()), Act::Read]);
    let mut options = fake.options();
    options.tls.mode = TlsMode::Required;
    let error = Client::connect(&options).unwrap_err();
    assert!(error.to_string().contains("more bytes follow it in clear"), "{error}");
}

#[test]
fn compression_goes_both_ways_alone_and_inside_tls() {
    let server = shared();
    for mode in [TlsMode::Disabled, TlsMode::Required] {
        let mut options = tls(&server, mode);
        // MariaDB has no zstd: the next one is taken.
        options.compression = vec![Compression::Zstd, Compression::Zlib];
        let mut client = Client::connect(&options).unwrap();
        assert_eq!(client.session().compression, Some(Compression::Zlib));
        assert_eq!(client.query("SHOW STATUS LIKE 'Compression'").unwrap().text(0, 1).unwrap(), "ON");
        let text = "abc".repeat(6 << 20);
        let statement = client.prepare("SELECT ?, LENGTH(?)").unwrap();
        let rows =
            client.execute_prepared(&statement, &[Value::from(text.as_str()), Value::from("x")]).unwrap();
        assert!(rows.rows[0][0].as_deref() == Some(text.as_bytes()));
        for _ in 0..300 {
            client.ping().unwrap();
        }
    }
}

#[test]
fn an_envelope_can_be_driven_without_its_client() {
    let server = shared();
    for (mode, compression) in [
        (TlsMode::Required, vec![]),
        (TlsMode::Disabled, vec![Compression::Zlib]),
        (TlsMode::Required, vec![Compression::Zlib]),
    ] {
        let mut options = tls(&server, mode);
        options.compression = compression;
        assert!(Client::connect(&options).unwrap().into_parts().is_err());
        let (fd, session, envelope) = Client::connect(&options).unwrap().into_enveloped_parts().unwrap();
        let (mut stream, mut envelope) = (TcpStream::from(fd), envelope.unwrap());
        let mut parser = ReplyParser::new(&session);
        let (mut packets, mut wire) = (Vec::new(), Vec::new());
        for rows in [1, 1000, 3] {
            packets.clear();
            wire.clear();
            let sql = format!("SELECT seq, REPEAT('x', 100) FROM mysql.seq_1_to_{rows}");
            command::query(&mut packets, sql.as_bytes());
            envelope.seal(&packets, &mut wire).unwrap();
            stream.write_all(&wire).unwrap();
            parser.start(Expect::Text);
            let mut buffer = [0; 1000];
            let reply = loop {
                let count = stream.read(&mut buffer).unwrap();
                packets.clear();
                envelope.open(&buffer[..count], &mut packets).unwrap();
                if let Progress::Done(reply) = parser.feed(&packets).unwrap() {
                    break reply;
                }
            };
            assert_eq!(reply.rows, rows);
        }
    }
}

#[test]
fn a_compressed_answer_that_is_damaged_is_an_error() {
    let compressed = MYSQL_8 | Capabilities::COMPRESS.0 as u32;
    for answer in [
        b"\x04\0\0\0\xff\xff\xff\x78\x9c\0\0".to_vec(),
        b"\xff\xff\xff\0\xff\xff\xff".to_vec(),
        [&b"\x0b\0\0\0\0\0\0"[..], &packet(1, b"\xff\x01")].concat(),
    ] {
        let fake = Fake::new(vec![
            Act::Send(greeting("8.0.36", compressed, "mysql_native_password")),
            Act::Read,
            Act::Send(ok(2)),
            Act::Read,
            Act::Send(answer),
        ]);
        let mut options = fake.options();
        options.compression = vec![Compression::Zlib];
        let mut client = Client::connect(&options).unwrap();
        assert!(client.ping().is_err());
    }
}
