//! Forms that many files of the kernel share.

/// The value behind `key` in lines such as `VmRSS:  1024 kB` (separator `:`) or `nr_throttled 3` (separator blank).
pub fn field<'a>(text: &'a str, key: &str, separator: char) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// The value of a line `key:  N kB`, in bytes, as in proc_meminfo(5) and proc_pid_status(5).
pub fn kib_field(text: &str, key: &str) -> Option<u64> {
    let digits = field(text, key, ':')?.strip_suffix("kB")?;
    digits.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The chosen word of `always [madvise] never`.
pub fn chosen(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "VmRSSx:\t1 kB\nVmRSS:\t  1024 kB\nThreads:\t7\nCapEff:\t000001ffffffffff\n";
        assert_eq!(kib_field(text, "VmRSS"), Some(1 << 20));
        assert_eq!(field(text, "Threads", ':'), Some("7"));
        assert_eq!(kib_field(text, "Threads"), None);
        assert_eq!(kib_field("A: 99999999999999999999 kB", "A"), None);
        assert_eq!(kib_field("A: 18446744073709551615 kB", "A"), None);
    }

    #[test]
    fn the_word_in_brackets_is_chosen() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        for text in ["", "none", "[open", "close]"] {
            assert_eq!(chosen(text), None, "{text}");
        }
    }
}
