//! The end of a certificate's validity, out of its PEM file (RFC 7468, RFC 5280 section 4.1).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use time::PrimitiveDateTime;
use time::macros::format_description;

/// Tags of DER.
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The end of the validity of the first certificate of a PEM file, in UTC; none where the text has no certificate.
pub fn not_after(pem: &str) -> Option<PrimitiveDateTime> {
    let (_, rest) = pem.split_once("-----BEGIN CERTIFICATE-----")?;
    let (body, _) = rest.split_once("-----END CERTIFICATE-----")?;
    let text: String = body.split_whitespace().collect();
    let bytes = STANDARD.decode(text).ok()?;
    let (_, certificate, _) = part(&bytes)?;
    let (_, signed, _) = part(certificate)?;
    let (tag, _, after) = part(signed)?;
    let after_version = if tag == VERSION { after } else { signed };
    // Serial number, algorithm and issuer.
    let validity = (0..3).try_fold(after_version, |rest, _| part(rest).map(|(_, _, rest)| rest))?;
    let (SEQUENCE, times, _) = part(validity)? else { return None };
    let (_, _, end) = part(times)?;
    instant(part(end)?)
}

/// The first part of some DER: its tag, its content, and the bytes behind it.
fn part(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// A UTCTime has two digits of the year: those from 50 on are of the 20th century (RFC 5280 section 4.1.2.5.1).
fn instant((tag, text, _): (u8, &[u8], &[u8])) -> Option<PrimitiveDateTime> {
    let text = std::str::from_utf8(text).ok()?;
    let text = match tag {
        UTC_TIME if text.get(..2)? >= "50" => format!("19{text}"),
        UTC_TIME => format!("20{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let form = format_description!("[year][month][day][hour][minute][second]Z");
    PrimitiveDateTime::parse(&text, form).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    /// Made by openssl, which says of it: notAfter=Apr 10 17:36:37 2054 GMT.
    const LONG: &str = "-----BEGIN CERTIFICATE-----
MIIBXDCCAQKgAwIBAgIBBTAKBggqhkjOPQQDAjAMMQowCAYDVQQDDAF0MCAXDTI2
MTEyMzE3MzYzN1oYDzIwNTQwNDEwMTczNjM3WjAMMQowCAYDVQQDDAF0MFkwEwYH
KoZIzj0CAQYIKoZIzj0DAQcDQgAEmlhXwzHxYIJh7b1vMldLclYUqzhgKncE9gL8
m5aXFdDPtDm5y7SQ2eECN6HvIgVar5vfLFlwTi09PLh0EBPJuaNTMFEwHQYDVR0O
BBYEFN9gGA865TDYUD1ZkoEwM7YGw3+DMB8GA1UdIwQYMBaAFN9gGA865TDYUD1Z
koEwM7YGw3+DMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIgb9b0
d9W8mq333THyN64OCfqJzLJ1tlcuoU/hk004ZhUCIQDFVJufAYeHCQ9u6RN/08VS
z1qjZQPCa7LjtDqVjdwQyA==
-----END CERTIFICATE-----";

    /// Likewise: notAfter=Dec 23 17:36:36 2026 GMT.
    const SHORT: &str = "-----BEGIN CERTIFICATE-----
MIIB5zCCAVCgAwIBAgIBBTANBgkqhkiG9w0BAQsFADAPMQ0wCwYDVQQDDAR0ZXN0
MB4XDTI2MTEyMzE3MzYzNloXDTI2MTIyMzE3MzYzNlowDzENMAsGA1UEAwwEdGVz
dDCBnzANBgkqhkiG9w0BAQEFAAOBjQAwgYkCgYEAwIA34EIdGwMbxztigolajASk
h3hLS5zjvF4uhghO7OzN1woQBjZ1XsJf5opOlQj4U4Ih7UFNvZcN5QTNfoD9+YCE
IwhvUWgCTsPXccPodGZ5UsE1oCe+VxyVgsiiNsnlmNRQnx+396zwSKY4w3R/arWX
oleq9cmqeM7QcDsFnh0CAwEAAaNTMFEwHQYDVR0OBBYEFPxTDhQyQpLQP0PgHKOe
3qgkKHdHMB8GA1UdIwQYMBaAFPxTDhQyQpLQP0PgHKOe3qgkKHdHMA8GA1UdEwEB
/wQFMAMBAf8wDQYJKoZIhvcNAQELBQADgYEAOSLSAQGKm2sfpOwyNCnu6PcOvo43
FRu1jKqnF+lv3iY3Co2gl9ZzyZKBpXu9SaykZ5IhUmHHTJKAshD2VwQEC0uTA3Np
zxKE5jlob8vJJdf+rU031FSgltQbe+fL9Rssracufb2XvtoodvOSaZhvqXxBsAu/
wZnYALCxhZ24xsg=
-----END CERTIFICATE-----";

    #[test]
    fn the_end_is_the_one_that_openssl_tells() {
        assert_eq!(not_after(LONG), Some(datetime!(2054-04-10 17:36:37)));
        assert_eq!(not_after(&format!("text before\n{SHORT}\n{LONG}")), Some(datetime!(2026-12-23 17:36:36)));
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        assert_eq!(not_after(""), None);
        assert_eq!(not_after("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"), None);
        // Whole lines are missing at its end.
        let cut: Vec<&str> = LONG.lines().filter(|line| !line.starts_with("MTEy")).collect();
        assert_eq!(not_after(&cut.join("\n")), None);
    }
}
