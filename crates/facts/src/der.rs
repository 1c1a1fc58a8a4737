//! The end of a certificate's validity, its names, the length of its RSA key and the hash of its signature, out of its PEM file (RFC 7468, RFC 5280
//! section 4.1).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use time::PrimitiveDateTime;
use time::macros::format_description;

/// Tags of DER.
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Identifiers in DER: common name, alternative names, and the algorithms of signatures by MD5 and SHA-1.
const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];
const ALTERNATIVE_NAMES: [u8; 5] = [0x06, 0x03, 0x55, 0x1d, 0x11];
const RSA_KEY: [u8; 11] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const RSA_MD5: [u8; 11] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x04];
const RSA_SHA1: [u8; 11] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05];
const ECDSA_SHA1: [u8; 9] = [0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];

/// The first certificate of a PEM file.
pub struct Certificate(Vec<u8>);

impl Certificate {
    /// Reads it; none where the text has no certificate.
    pub fn read(pem: &str) -> Option<Self> {
        let (_, rest) = pem.split_once("-----BEGIN CERTIFICATE-----")?;
        let (body, _) = rest.split_once("-----END CERTIFICATE-----")?;
        let text: String = body.split_whitespace().collect();
        Some(Self(STANDARD.decode(text).ok()?))
    }

    /// All certificates of a PEM file, in its order; those that cannot be read are left out.
    pub fn all(pem: &str) -> Vec<Self> {
        pem.split("-----BEGIN CERTIFICATE-----")
            .skip(1)
            .filter_map(|part| Self::read(&format!("-----BEGIN CERTIFICATE-----{part}")))
            .collect()
    }

    /// The signed part from the validity on, and the bytes behind the signed part.
    fn validity_on(&self) -> Option<(&[u8], &[u8])> {
        let (_, certificate, _) = part(&self.0)?;
        let (_, signed, signature) = part(certificate)?;
        let (tag, _, after) = part(signed)?;
        let after_version = if tag == VERSION { after } else { signed };
        // Serial number, algorithm and issuer.
        let validity = (0..3).try_fold(after_version, |rest, _| part(rest).map(|(_, _, rest)| rest))?;
        Some((validity, signature))
    }

    /// The name of who signed it, in DER.
    pub fn issuer(&self) -> Option<&[u8]> {
        let (_, certificate, _) = part(&self.0)?;
        let (_, signed, _) = part(certificate)?;
        let (tag, _, after) = part(signed)?;
        let after_version = if tag == VERSION { after } else { signed };
        // Serial number and algorithm.
        let issuer = (0..2).try_fold(after_version, |rest, _| part(rest).map(|(_, _, rest)| rest))?;
        part(issuer).map(|(_, name, _)| name)
    }

    /// Its own name, in DER: an authority bears it as the issuer of what it signs.
    pub fn subject(&self) -> Option<&[u8]> {
        let (_, _, subject) = part(self.validity_on()?.0)?;
        part(subject).map(|(_, name, _)| name)
    }

    /// The common name among its own name.
    pub fn common_name(&self) -> Option<String> {
        let (_, name, _) = behind(self.subject()?, &COMMON_NAME).and_then(part)?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// The end of the validity, in UTC.
    pub fn not_after(&self) -> Option<PrimitiveDateTime> {
        let (SEQUENCE, times, _) = part(self.validity_on()?.0)? else { return None };
        let (_, _, end) = part(times)?;
        instant(part(end)?)
    }

    /// The hash of its signature where that is md5 or sha1, and `other`.
    pub fn hash(&self) -> Option<&'static str> {
        let (_, algorithm, _) = part(self.validity_on()?.1)?;
        Some(match algorithm {
            id if id.starts_with(&RSA_MD5) => "md5",
            id if id.starts_with(&RSA_SHA1) || id.starts_with(&ECDSA_SHA1) => "sha1",
            _ => "other",
        })
    }

    /// Bits of its key where that is one of RSA (RFC 3279 section 2.3.1), and 0 for keys of other kinds.
    pub fn rsa_bits(&self) -> Option<u64> {
        let (_, _, subject) = part(self.validity_on()?.0)?;
        let (_, _, key) = part(subject)?;
        let (_, key, _) = part(key)?;
        let (_, algorithm, bits) = part(key)?;
        if !algorithm.starts_with(&RSA_KEY) {
            return Some(0);
        }
        // A text of bits begins with the number of those that are not used in its last byte.
        let (_, bits, _) = part(bits)?;
        let (_, numbers, _) = part(bits.get(1..)?)?;
        let (_, modulus, _) = part(numbers)?;
        let first = modulus.iter().position(|byte| *byte != 0)?;
        let modulus = modulus.get(first..)?;
        let leading = u64::from(modulus.first()?.leading_zeros());
        Some(8 * modulus.len() as u64 - leading)
    }

    /// The host names that it is for: its alternative names, or, where it has none, its common name.
    pub fn names(&self) -> Option<Vec<String>> {
        const DNS_NAME: u8 = 0x82;
        let (_, _, subject) = part(self.validity_on()?.0)?;
        let (_, subject, rest) = part(subject)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if let Some(mut names) = behind(rest, &ALTERNATIVE_NAMES).and_then(alternative) {
            let mut found = Vec::new();
            while let Some((tag, name, more)) = part(names) {
                found.extend((tag == DNS_NAME).then(|| text(name)));
                names = more;
            }
            return Some(found);
        }
        let common = behind(subject, &COMMON_NAME).and_then(part).map(|(_, name, _)| text(name));
        Some(common.into_iter().collect())
    }
}

/// The bytes behind an identifier.
fn behind<'a>(bytes: &'a [u8], id: &[u8]) -> Option<&'a [u8]> {
    let at = bytes.windows(id.len()).position(|some| some == id)?;
    bytes.get(at + id.len()..)
}

/// The names of an extension: a text of octets, perhaps behind a switch, with a sequence in it.
fn alternative(bytes: &[u8]) -> Option<&[u8]> {
    const BOOLEAN: u8 = 0x01;
    let (tag, content, rest) = part(bytes)?;
    let octets = if tag == BOOLEAN { part(rest)?.1 } else { content };
    part(octets).map(|(_, names, _)| names)
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

    fn not_after(pem: &str) -> Option<PrimitiveDateTime> {
        Certificate::read(pem)?.not_after()
    }

    /// Made by openssl with -sha1 and the alternative names db1.example.com and db2.example.com.
    const OLD: &str = "-----BEGIN CERTIFICATE-----
MIIBvjCCAWWgAwIBAgIUYkvS+Xk0KErqTvn41bJfEz8cW0swCQYHKoZIzj0EATAa
MRgwFgYDVQQDDA9vbGQuZXhhbXBsZS5jb20wIBcNMjYxMTI0MTgzMTI0WhgPMjEy
NjEwMzExODMxMjRaMBoxGDAWBgNVBAMMD29sZC5leGFtcGxlLmNvbTBZMBMGByqG
SM49AgEGCCqGSM49AwEHA0IABItbFzLTGgfhmfPn1pdFMD1heJdNd6YP9tWKZR5P
eC44XiDkY5bIA3kTYADiEd4rG3z9donIOcsdqhvILLOoO4ijgYcwgYQwHQYDVR0O
BBYEFEXat0sndg3W0stCT1ne6OEMLjs5MB8GA1UdIwQYMBaAFEXat0sndg3W0stC
T1ne6OEMLjs5MA8GA1UdEwEB/wQFMAMBAf8wMQYDVR0RBCowKIIPZGIxLmV4YW1w
bGUuY29tgg9kYjIuZXhhbXBsZS5jb22HBAoAAAEwCQYHKoZIzj0EAQNIADBFAiEA
4r7eIPA8eKayi2Bi8QqTJJ0FTikkPpqa4LygYsViiUUCIDqzr7anRgc/pBtWZwBx
7BP3gthiJ1WmqaGdbavPvXsB
-----END CERTIFICATE-----";

    #[test]
    fn the_hash_and_the_names_are_those_that_openssl_tells() {
        let long = Certificate::read(LONG).unwrap();
        assert_eq!((long.hash(), long.names()), (Some("other"), Some(vec!["t".to_owned()])));
        let old = Certificate::read(OLD).unwrap();
        let names = ["db1.example.com", "db2.example.com"].map(str::to_owned).to_vec();
        assert_eq!((old.hash(), old.names()), (Some("sha1"), Some(names)));
        // `openssl x509 -text` tells 1024 bits of this one, and of the others elliptic curves.
        assert_eq!(Certificate::read(SHORT).unwrap().rsa_bits(), Some(1024));
        assert_eq!([long.rsa_bits(), old.rsa_bits()], [Some(0), Some(0)]);
    }

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
