//! A server that says anything: no panic, no endless exchange, and no password in clear where others could read it.

use mydyno_wire::{ConnectOptions, Endpoint, Handshake, Secret, Step, TlsMode};

const PASSWORD: &[u8] = b"correct horse battery staple";

pub fn run(data: &[u8]) -> String {
    let Some((&choice, bytes)) = data.split_first() else { return String::new() };
    let tcp = choice & 1 != 0;
    let endpoint = match tcp {
        true => Endpoint::Tcp { host: "192.0.2.1".into(), port: 3306 },
        false => Endpoint::Unix("/s".into()),
    };
    let mut options = ConnectOptions::new(endpoint, "app");
    options.password = Some(Secret::new(PASSWORD.to_vec()));
    options.database = (choice & 2 != 0).then(|| "shop".to_owned());
    options.tls.mode = if choice & 4 != 0 { TlsMode::Required } else { TlsMode::Disabled };
    let mut handshake = Handshake::new(&options);
    let mut out = Vec::new();
    let mut encrypted = false;
    for piece in bytes.chunks(usize::from(choice >> 3).max(1)) {
        let sent = out.len();
        match handshake.feed(piece, &mut out) {
            Ok(Step::More) => {}
            Ok(Step::StartTls) => {
                encrypted = true;
                if let Err(error) = handshake.tls_established("TLS".to_owned(), None, &mut out) {
                    return error.to_string();
                }
            }
            Ok(Step::Done(session)) => {
                return format!("{:?} {}", session.capabilities, session.authentication);
            }
            Err(error) => return error.to_string(),
        }
        // Neither TLS without a verified certificate nor plain TCP to another host permits a password that can be read.
        if tcp {
            assert!(
                !out[sent..].windows(PASSWORD.len()).any(|w| w == PASSWORD),
                "the password went out in clear"
            );
        }
        assert!(out.len() < 1 << 20, "the exchange has no end");
    }
    format!("{} {encrypted} {}", handshake.state(), out.len())
}
