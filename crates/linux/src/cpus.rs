//! Lists of CPUs and nodes: `0-1,3`.

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
