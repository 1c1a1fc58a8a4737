//! Hosts of clients: which are of this machine, which are public, and which belong together.

use std::net::IpAddr;

/// Words in names of hosts and schemas that speak of a test.
const TEST_WORDS: [&str; 10] =
    ["stg", "stage", "staging", "test", "tst", "testing", "dev", "devel", "qa", "uat"];

/// Whether a host is this machine.
pub(super) fn is_local(host: &str) -> bool {
    host.is_empty()
        || host.eq_ignore_ascii_case("localhost")
        || host.starts_with("localhost.")
        || address(host).is_some_and(|address| address.is_loopback())
}

/// An address, with one of IPv4 that is written as one of IPv6 as what it is.
fn address(host: &str) -> Option<IpAddr> {
    Some(host.parse::<IpAddr>().ok()?.to_canonical())
}

/// Whether a host is an address that is not of a private network; `None` where it is a name.
pub(super) fn is_public(host: &str) -> Option<bool> {
    Some(match address(host)? {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            // 100.64.0.0/10 is of carriers, 198.18.0.0/15 of measurements.
            let shared =
                first == 100 && (64..128).contains(&second) || first == 198 && (18..20).contains(&second);
            !(v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_unspecified() || shared)
        }
        IpAddr::V6(v6) => {
            let first = v6.segments()[0];
            let private = first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfe80;
            !(private || v6.is_loopback() || v6.is_unspecified())
        }
    })
}

/// Whether the host of an account is a public address or network, as `83.%` and `83.1.2.0/255.255.255.0`. Networks that hold private
/// ones as well are not.
pub(in crate::collectors) fn is_public_pattern(host: &str) -> bool {
    const PRIVATE_WITHIN: [&str; 5] = ["100", "169", "172", "192", "198"];
    let start = host.split('/').next().unwrap_or_default();
    if !start.contains('%') {
        // A mask of less than 16 bits leaves the second number open.
        let is_wide = host.split_once('/').is_some_and(|(_, mask)| match mask.parse::<u8>() {
            Ok(bits) => bits < 16,
            Err(_) => !mask.starts_with("255.255."),
        });
        let first = start.split('.').next().unwrap_or_default();
        return !(is_wide && PRIVATE_WITHIN.contains(&first)) && is_public(start) == Some(true);
    }
    let Some(net) = start.strip_suffix(".%") else { return false };
    let mut parts: Vec<&str> = net.split('.').filter(|part| *part != "%").collect();
    if parts.is_empty() || parts.len() > 3 || parts.len() == 1 && PRIVATE_WITHIN.contains(&parts[0]) {
        return false;
    }
    parts.resize(4, "1");
    is_public(&parts.join(".")) == Some(true)
}

/// Whether a name has a part that speaks of a test, numbers at its end apart.
pub(super) fn speaks_of_a_test(name: &str) -> bool {
    name.to_ascii_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .map(|part| part.trim_end_matches(|c: char| c.is_ascii_digit()))
        .any(|part| TEST_WORDS.contains(&part))
}

/// The part of a host that those of one deployment, or of one network, have in common.
pub(super) fn stem(host: &str) -> String {
    if let Some(address) = address(host) {
        return match address {
            IpAddr::V4(_) => {
                host.rsplit_once('.').map_or_else(|| host.to_owned(), |(net, _)| format!("{net}.*"))
            }
            IpAddr::V6(_) => host.to_owned(),
        };
    }
    let name = host.split('.').next().unwrap_or_default();
    match name.rsplit_once('-') {
        Some((stem, _)) if !stem.is_empty() => format!("{stem}-*"),
        _ => {
            let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
            if stem.is_empty() || stem == name { host.to_owned() } else { format!("{stem}*") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_told_from_private_ones() {
        for host in ["203.0.113.77", "8.8.8.8", "2001:db8::1", "::ffff:8.8.8.8"] {
            assert_eq!(is_public(host), Some(true), "{host}");
        }
        for host in [
            "10.2.3.4",
            "172.31.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.1.1",
            "127.0.0.1",
            "::1",
            "fd00::1",
            "fe80::1",
            "::ffff:10.0.0.1",
        ] {
            assert_eq!(is_public(host), Some(false), "{host}");
        }
        assert_eq!(is_public("web01"), None);
    }

    #[test]
    fn networks_of_accounts_are_public_or_not() {
        for host in ["83.%", "83.1.2.%", "83.1.%.%", "203.0.113.7", "83.1.2.0/255.255.255.0"] {
            assert!(is_public_pattern(host), "{host}");
        }
        for host in
            ["%", "10.%", "192.%", "192.168.%", "172.%", "8%", "localhost", "web%", "%.example.org", ""]
        {
            assert!(!is_public_pattern(host), "{host}");
        }
    }

    #[test]
    fn names_of_tests_are_known_by_their_parts() {
        for name in ["stg-web-02", "web.dev.example", "qa1", "shop_test"] {
            assert!(speaks_of_a_test(name), "{name}");
        }
        for name in ["web-02", "latest", "device", "contest-1"] {
            assert!(!speaks_of_a_test(name), "{name}");
        }
    }

    #[test]
    fn hosts_of_one_deployment_have_a_stem_in_common() {
        assert_eq!(stem("app-7f9c6-x2k4z"), "app-7f9c6-*");
        assert_eq!(stem("web01.example.org"), "web*");
        assert_eq!(stem("10.1.1.12"), "10.1.1.*");
        assert_eq!(stem("db"), "db");
    }
}
