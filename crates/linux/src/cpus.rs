//! The processor's name, and lists of CPUs and nodes: `0-1,3`.

use crate::text::field;

/// The processor's name in `/proc/cpuinfo`; where it has none, as on ARM, the numbers of implementer and part.
pub fn model(text: &str) -> Option<String> {
    let named = ["model name", "cpu model", "cpu"].iter().find_map(|key| field(text, key, ':'));
    let numbered = || {
        let (by, part) = (field(text, "CPU implementer", ':')?, field(text, "CPU part", ':')?);
        Some(format!("implementer {by} part {part}"))
    };
    named.map(str::to_owned).or_else(numbered)
}

/// Reads a list, without repetition and in order. `None` when it is not a list, or a number is larger than `largest`.
pub fn parse(text: &str, largest: usize) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > largest {
            return None;
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

/// Writes an ordered list in the shortest form, as the kernel does.
pub fn show(cpus: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let show = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(show).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_has_its_name_or_its_numbers() {
        assert_eq!(model("processor\t: 0\nmodel name\t: Some CPU\n").as_deref(), Some("Some CPU"));
        assert_eq!(model("cpu\t: POWER9\n").as_deref(), Some("POWER9"));
        let arm = "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(model(arm).as_deref(), Some("implementer 0x41 part 0xd0c"));
        assert_eq!(model(""), None);
    }

    #[test]
    fn a_list_is_read_and_has_one_spelling() {
        for (text, numbers, shown) in [
            ("0\n", vec![0], "0"),
            ("1,0", vec![0, 1], "0-1"),
            ("0-1,3", vec![0, 1, 3], "0-1,3"),
            ("5,3-4,3", vec![3, 4, 5], "3-5"),
        ] {
            assert_eq!(parse(text, 1023), Some(numbers.clone()), "{text}");
            assert_eq!(show(&numbers), shown);
        }
        for text in ["", "a", "2-1", "1-", "1024", "0,,1", "0-18446744073709551615"] {
            assert_eq!(parse(text, 1023), None, "{text}");
        }
    }
}
