//! The authorities that stand behind the server's certificate: who verifies the server verifies them as well.

use serde_json::{Value, json};
use time::{OffsetDateTime, PrimitiveDateTime};

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::der::Certificate;
use crate::mounts;
use crate::readings::Readings;
use crate::source::Read;

/// Authorities of certificates.
pub static COLLECTOR: Collector = Collector {
    name: "authority",
    cost: Cost { host_ms: 1, server_ms: 0 },
    deadline_ms: 1000,
    depth: Depth::Audit,
    facts: &[fact(
        "server.tls.authorities",
        "",
        "authorities that signed the certificate of ssl_cert, and those above them, as far as ssl_cert and ssl_ca hold their certificates: authority, file, left_s (until that certificate expires; negative since); of several certificates of one authority the one that lasts the longest; 8 at most",
    )],
    run: Run::Host(run),
};

/// Steps from the server's certificate up.
const LONGEST: usize = 8;

/// Size of a file of certificates, in bytes: those of systems with all public authorities have a quarter of a million.
const LARGEST: u64 = 2 << 20;

fn run(context: &Context, readings: &Readings) {
    let now = OffsetDateTime::now_utc();
    let above = authorities(context).map(|chain| {
        let entry = |link: Link| {
            let left_s = (link.end.assume_utc() - now).whole_seconds();
            json!({"authority": link.name, "file": link.file, "left_s": left_s})
        };
        chain.into_iter().map(entry).collect::<Vec<Value>>()
    });
    readings.put("server.tls.authorities", "ssl_ca", above);
}

/// An authority.
#[derive(Debug, PartialEq)]
struct Link {
    name: String,
    file: String,
    end: PrimitiveDateTime,
}

fn authorities(context: &Context) -> Read<Vec<Link>> {
    let Some(named) = context.variable("ssl_cert") else { return Ok(vec![]) };
    let server = context.server.as_ref().map_err(Clone::clone)?;
    let view = mounts::view(&context.source, server)?;
    let read = |named: &str| -> Read<(String, Vec<Certificate>)> {
        let path = context.within_datadir(named);
        let text = context.source.text_within(&format!("{view}{path}"), LARGEST)?;
        Ok((path, Certificate::all(&text)))
    };
    let (path, of_server) = read(named)?;
    let mut known: Vec<(&str, &Certificate)> =
        of_server.iter().skip(1).map(|found| (path.as_str(), found)).collect();
    let of_authority = context.variable("ssl_ca").map(read).transpose()?;
    if let Some((path, found)) = &of_authority {
        known.extend(found.iter().map(|certificate| (path.as_str(), certificate)));
    }
    let first = of_server.first();
    Ok(first.map(|first| chain(first, &known)).unwrap_or_default())
}

/// The authorities above a certificate, from the one that signed it up, as far as they are known. One that signed itself is the last.
fn chain(first: &Certificate, known: &[(&str, &Certificate)]) -> Vec<Link> {
    let mut found = Vec::new();
    let mut at = first;
    while found.len() < LONGEST {
        let (Some(issuer), Some(own)) = (at.issuer(), at.subject()) else { break };
        if issuer == own {
            break;
        }
        let of_issuer = known.iter().filter(|(_, some)| some.subject() == Some(issuer));
        let lasting = of_issuer.filter_map(|(file, some)| Some((some.not_after()?, *file, *some)));
        let Some((end, file, certificate)) = lasting.max_by_key(|(end, ..)| *end) else { break };
        let name =
            certificate.common_name().unwrap_or_else(|| "an authority without a common name".to_owned());
        found.push(Link { name, file: file.to_owned(), end });
        at = certificate;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    /// Made by openssl, which says of them: notAfter=Oct  7 02:01:36 2059 GMT and, of the same authority, notAfter=Dec 11 02:01:36
    /// 2026 GMT.
    const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----
MIIBgTCCASegAwIBAgIUCbd536WnwxXNTZZDQ3OnqH3R6GQwCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKRnJlaWdodCBDQTAgFw0yNjExMjkwMjAxMzZaGA8yMDU5MTAw
NzAyMDEzNlowFTETMBEGA1UEAwwKRnJlaWdodCBDQTBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABPN7AjncxVjkbJGn19DZaRsOHBiFN6xqFyjLJi1wMYITQNjtWald
D999+pZBVA9cqx3oIenwvrN+Vge3epBRKdGjUzBRMB0GA1UdDgQWBBTh65TD/dyP
j/NYuT6taS2OJYRSPTAfBgNVHSMEGDAWgBTh65TD/dyPj/NYuT6taS2OJYRSPTAP
BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQDilbMjZx5ja4ZJEir9
HUuRcYUxPNJQHByb7CfgqHhCrwIgb0CCZMjBWFxsSDlFuFdNOU9eOT1pccfINi/d
kCykhE8=
-----END CERTIFICATE-----";
    const ENDS_FIRST: &str = "-----BEGIN CERTIFICATE-----
MIIBfjCCASWgAwIBAgIUWWkepYlbIFtlmpkU+yS2oPj0E54wCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKRnJlaWdodCBDQTAeFw0yNjExMjkwMjAxMzZaFw0yNjEyMTEw
MjAxMzZaMBUxEzARBgNVBAMMCkZyZWlnaHQgQ0EwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATzewI53MVY5GyRp9fQ2WkbDhwYhTesahcoyyYtcDGCE0DY7VmpXQ/f
ffqWQVQPXKsd6CHp8L6zflYHt3qQUSnRo1MwUTAdBgNVHQ4EFgQU4euUw/3cj4/z
WLk+rWktjiWEUj0wHwYDVR0jBBgwFoAU4euUw/3cj4/zWLk+rWktjiWEUj0wDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiBGoaJyEeDcqFBFBksMb6m9
Rst6kdS+/Ne1M8MUiwq3wgIgXR4pN0pyHyMychM2xL7OXj0Fk2Dlb7DftZ6M+puJ
U7I=
-----END CERTIFICATE-----";

    /// Signed by that authority.
    const SERVER: &str = "-----BEGIN CERTIFICATE-----
MIIBDDCBswIBBzAKBggqhkjOPQQDAjAVMRMwEQYDVQQDDApGcmVpZ2h0IENBMCAX
DTI2MTEyOTAyMDEzNloYDzIwNTcwMTEwMDIwMTM2WjAOMQwwCgYDVQQDDANkYjcw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQfVa3UBpx7SSRCE14D2qaUQ9Kw227z
zNVUjBWBmeDAEywHd2GWAse9/sdi+8lQU9CVWK3GKvkJq/d2g5PVpsj/MAoGCCqG
SM49BAMCA0gAMEUCIQCZmzv5I4vBF2sxgnCuDs8VN0nUtsMZDeZ9npwUrM6QvwIg
BehpK8jxrmn2VU5l7Bnu4lQ1se8C+wpBoP35D0XGW4M=
-----END CERTIFICATE-----";

    fn read(pem: &str) -> Certificate {
        Certificate::read(pem).unwrap()
    }

    #[test]
    fn the_authority_that_signed_the_certificate_is_told_with_its_end() {
        let (server, authority, short) = (read(SERVER), read(AUTHORITY), read(ENDS_FIRST));
        let link = |file: &str, end| vec![Link { name: "Freight CA".to_owned(), file: file.to_owned(), end }];
        let ends = datetime!(2026-12-11 02:01:36);
        assert_eq!(chain(&server, &[("/ca.pem", &short)]), link("/ca.pem", ends));
        // While an authority is renewed both stand there.
        let both = [("/new.pem", &authority), ("/ca.pem", &short)];
        assert_eq!(chain(&server, &both), link("/new.pem", datetime!(2059-10-07 02:01:36)));
        assert_eq!(chain(&server, &[("/s.pem", &server)]), []);
        assert_eq!(chain(&authority, &[("/ca.pem", &short)]), [], "it signed itself");
    }

    #[test]
    fn all_certificates_of_a_file_are_read() {
        let all = Certificate::all(&format!("text\n{SERVER}\nmore\n{ENDS_FIRST}\n"));
        let names: Vec<Option<String>> = all.iter().map(Certificate::common_name).collect();
        assert_eq!(names, [Some("db7".to_owned()), Some("Freight CA".to_owned())]);
    }
}
