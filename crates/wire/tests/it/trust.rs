//! Servers that get a password in a form that can be read, and how a server proves its identity.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use mydyno_wire::packet::put_lenenc_bytes;
use mydyno_wire::{Client, ConnectOptions, Endpoint, ServerIdentity, ServerKey, TlsMode, WireError};
use mydyno_wire::{auth, capability::Capabilities};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};

use crate::certificates::Certificates;
use crate::fake::{MYSQL_8, greeting, ok, packet};

const PASSWORD: &[u8] = b"hunter2";

/// A server of this host that plays packets over TLS, or over plain TCP, and keeps what it is sent.
struct Rogue {
    port: u16,
    certificates: Certificates,
    certificate: CertificateDer<'static>,
    _folder: tempfile::TempDir,
    received: std::thread::JoinHandle<Vec<u8>>,
}

/// Answers behind the client's handshake response, given the certificate: each is sent after a packet came.
type Script = fn(&CertificateDer<'_>) -> Vec<Vec<u8>>;

impl Rogue {
    fn new(name: &str, tls: bool, script: Script) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let certificates = Certificates::make(folder.path());
        let read = |ending: &str| std::fs::read(certificates.path(&format!("{name}.{ending}"))).unwrap();
        let certificate = CertificateDer::from_pem_slice(&read("pem")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], PrivateKeyDer::from_pem_slice(&read("key")).unwrap())
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let packets = script(&certificate);
        let received = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut received = Vec::new();
            let capabilities = if tls { MYSQL_8 | Capabilities::SSL.0 as u32 } else { MYSQL_8 };
            stream.write_all(&greeting("8.0.36", capabilities, "mysql_native_password")).unwrap();
            if tls {
                let mut request = [0; 36];
                if stream.read_exact(&mut request).is_err() {
                    return received;
                }
                let mut connection = rustls::ServerConnection::new(Arc::new(config)).unwrap();
                play(&mut rustls::Stream::new(&mut connection, &mut stream), packets, &mut received);
            } else {
                play(&mut stream, packets, &mut received);
            }
            received
        });
        Self { port, certificates, certificate, _folder: folder, received }
    }

    fn options(&self) -> ConnectOptions {
        let endpoint = Endpoint::Tcp { host: "127.0.0.1".into(), port: self.port };
        let mut options = ConnectOptions::new(endpoint, "app");
        options.password = Some(mydyno_wire::Secret::new(PASSWORD.to_vec()));
        options
    }

    /// Whether the password reached it as it is.
    fn got_the_password(self) -> bool {
        self.received.join().unwrap().windows(PASSWORD.len()).any(|w| w == PASSWORD)
    }
}

fn play(stream: &mut (impl Read + Write), packets: Vec<Vec<u8>>, received: &mut Vec<u8>) {
    for answer in packets {
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes) {
            Ok(count @ 1..) => received.extend_from_slice(&bytes[..count]),
            _ => return,
        }
        if stream.write_all(&answer).and_then(|()| stream.flush()).is_err() {
            return;
        }
    }
    let _ = stream.read_to_end(received);
}

fn switch(plugin: &str) -> Vec<u8> {
    packet(2, &[b"\xfe", plugin.as_bytes(), b"\0ABCDEFGHIJKLMNOPQRST\0"].concat())
}

/// Requests for the whole password.
const ASKING: [(&str, Script); 3] = [
    ("mysql_clear_password", |_| vec![switch("mysql_clear_password"), ok(4)]),
    ("sha256_password", |_| vec![switch("sha256_password"), ok(4)]),
    ("caching_sha2_password", |_| vec![switch("caching_sha2_password"), packet(4, b"\x01\x04"), ok(6)]),
];

#[test]
fn a_server_that_is_not_verified_gets_no_password_through_tls_that_was_asked_for() {
    for (plugin, script) in ASKING {
        let rogue = Rogue::new("self", true, script);
        let mut options = rogue.options();
        options.tls.mode = TlsMode::Required;
        let error = Client::connect(&options).unwrap_err();
        assert!(matches!(error, WireError::Auth { .. }), "{plugin}: {error}");
        for part in [plugin, "not verified", "--ssl-ca=FILE", "--allow-unverified-password"] {
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
        assert!(!rogue.got_the_password(), "{plugin}");
    }
}

#[test]
fn an_option_and_a_verified_certificate_let_the_password_go() {
    for (plugin, script) in ASKING {
        let rogue = Rogue::new("self", true, script);
        let mut options = rogue.options();
        options.tls.mode = TlsMode::Required;
        options.allow_unverified_password = true;
        drop(Client::connect(&options).unwrap());
        assert!(rogue.got_the_password(), "{plugin}");
        let rogue = Rogue::new("server", true, script);
        let mut options = rogue.options();
        options.tls.mode = TlsMode::VerifyIdentity;
        options.tls.ca = Some(rogue.certificates.path("ca.pem"));
        assert_eq!(Client::connect(&options).unwrap().session().identity, ServerIdentity::Certificate);
        assert!(rogue.got_the_password(), "{plugin}");
    }
}

#[test]
fn on_the_loopback_interface_the_default_lets_all_but_the_plainest_method_go() {
    for (plugin, script) in ASKING {
        let rogue = Rogue::new("self", true, script);
        let plain = plugin == "mysql_clear_password";
        assert_eq!(Client::connect(&rogue.options()).is_err(), plain, "{plugin}");
        assert_eq!(rogue.got_the_password(), !plain, "{plugin}");
    }
}

#[test]
fn a_key_that_a_server_of_another_host_sends_encrypts_nothing() {
    let options = |key, allow| {
        let mut options = ConnectOptions::new(Endpoint::Tcp { host: "192.0.2.1".into(), port: 3306 }, "app");
        options.password = Some("hunter2".into());
        options.server_key = key;
        options.allow_unverified_password = allow;
        auth::Circumstances::new(&options)
    };
    let ask = |key, allow| {
        let data = b"ABCDEFGHIJKLMNOPQRST";
        auth::Exchange::start(auth::Plugin::Sha256, data, &options(key, allow))
            .map(|(_, answer)| answer.to_vec())
    };
    for key in [ServerKey::AskWhenLocal, ServerKey::Ask] {
        let error = ask(key.clone(), false).unwrap_err().to_string();
        assert!(error.contains("--server-public-key-path=FILE"), "{error}");
        assert_eq!(ask(key, true).unwrap(), [1]);
    }
    assert!(ask(ServerKey::Given("none".into()), false).unwrap_err().to_string().contains("not an RSA key"));
}

#[test]
fn a_self_signed_certificate_that_is_given_as_an_authority_is_verified() {
    let connect = |ca: &str, mode| {
        let rogue = Rogue::new("self", true, |_| vec![ok(2)]);
        let mut options = rogue.options();
        options.tls.mode = mode;
        options.tls.ca = Some(rogue.certificates.path(ca));
        Client::connect(&options).map(|client| client.session().identity)
    };
    assert_eq!(connect("self.pem", TlsMode::VerifyCa).unwrap(), ServerIdentity::Certificate);
    let error = connect("ca.pem", TlsMode::VerifyCa).unwrap_err().to_string();
    assert!(error.contains("authority of --ssl-ca"), "{error}");
    // Its name is "self".
    let error = connect("self.pem", TlsMode::VerifyIdentity).unwrap_err().to_string();
    assert!(error.contains("for another host"), "{error}");
}

#[test]
fn the_proof_of_a_certificate_is_that_of_an_independent_implementation() {
    // Python: hashlib.sha256(sha1(sha1(b"hunter2")) + b"abcdefghijklmnopqrst" + bytes(range(32))).hexdigest()
    let stored = hex("58815970be77b3720276f63db198b1fa42e5cc02");
    let certificate: [u8; 32] = std::array::from_fn(|i| i as u8);
    let proof = auth::certificate_proof(&stored, b"abcdefghijklmnopqrst", &certificate);
    assert_eq!((proof[0], String::from_utf8_lossy(&proof[1..]).as_ref()), (1, PROOF));
}

const PROOF: &str = "002bea092a9fc9bfc480401d1d2b5eccf7be62899db43d0ee09c931a970b8219";

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// An OK packet that proves `certificate`, as MariaDB 11.4 makes it.
fn proving(certificate: &[u8]) -> Vec<u8> {
    let stored = hex("58815970be77b3720276f63db198b1fa42e5cc02");
    let fingerprint: [u8; 32] = Sha256::digest(certificate).into();
    let mut payload = vec![0, 0, 0, 2, 0, 0, 0];
    put_lenenc_bytes(&mut payload, &auth::certificate_proof(&stored, b"abcdefghijklmnopqrst", &fingerprint));
    packet(2, &payload)
}

#[test]
fn a_server_that_knows_the_password_proves_its_certificate_and_one_in_between_does_not() {
    let rogue = Rogue::new("self", true, |certificate| vec![proving(certificate)]);
    let mut options = rogue.options();
    options.tls.mode = TlsMode::Required;
    assert_eq!(Client::connect(&options).unwrap().session().identity, ServerIdentity::Password);
    assert_ne!(rogue.certificate.len(), 0);
    for mode in [TlsMode::Required, TlsMode::Preferred] {
        let rogue = Rogue::new("self", true, |_| vec![proving(b"the certificate of another server")]);
        let mut options = rogue.options();
        options.tls.mode = mode;
        let error = Client::connect(&options).unwrap_err();
        assert!(error.to_string().contains("a man in the middle may sit between"), "{error}");
    }
    let rogue = Rogue::new("self", true, |_| vec![ok(2)]);
    let client = Client::connect(&rogue.options()).unwrap();
    assert_eq!(client.session().identity, ServerIdentity::Unknown);
}
