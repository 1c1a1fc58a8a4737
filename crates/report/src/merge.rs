//! Sentences that differ in their numbers alone, as one sentence with ranges.

/// A piece of a sentence.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Words(String),
    /// A number as written, with its unit of time if it has one; in seconds where it has one.
    Number {
        text: String,
        value: f64,
        is_time: bool,
    },
}

/// Units of time in seconds.
const TIMES: [(&str, f64); 4] = [("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];

/// One sentence in the place of all, with `least–most` where their numbers differ. `None` where they differ in more.
pub fn merged(sentences: &[&str]) -> Option<String> {
    let all: Vec<Vec<Piece>> = sentences.iter().map(|sentence| pieces(sentence)).collect();
    let (first, others) = all.split_first()?;
    if !others.iter().all(|other| same_words(first, other)) {
        return None;
    }
    let range = |n: usize| match &first[n] {
        Piece::Words(words) => words.clone(),
        Piece::Number { is_time, .. } => range(all.iter().map(|pieces| &pieces[n]), *is_time),
    };
    Some((0..first.len()).map(range).collect())
}

fn same_words(a: &[Piece], b: &[Piece]) -> bool {
    let same = |(a, b): (&Piece, &Piece)| match (a, b) {
        (Piece::Words(a), Piece::Words(b)) => a == b,
        (Piece::Number { is_time: a, .. }, Piece::Number { is_time: b, .. }) => a == b,
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

fn range<'a>(numbers: impl Iterator<Item = &'a Piece>, is_time: bool) -> String {
    let mut numbers: Vec<(f64, &str)> = numbers
        .filter_map(|piece| match piece {
            Piece::Number { text, value, .. } => Some((*value, text.as_str())),
            Piece::Words(_) => None,
        })
        .collect();
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
    match (numbers.first(), numbers.last()) {
        (Some((_, low)), Some((_, high))) if low == high => (*low).to_owned(),
        (Some((_, low)), Some((_, high))) if is_time => format!("{low} – {high}"),
        (Some((_, low)), Some((_, high))) => format!("{low}–{high}"),
        _ => String::new(),
    }
}

fn pieces(sentence: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut words = String::new();
    let mut rest = sentence;
    while let Some(c) = rest.chars().next() {
        // Digits inside a word, as in p99, are its letters.
        let length = match words.ends_with(char::is_alphanumeric) {
            true => 0,
            false => number_length(rest),
        };
        if length == 0 {
            words.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        if !words.is_empty() {
            pieces.push(Piece::Words(std::mem::take(&mut words)));
        }
        let value: f64 = rest[..length].replace(',', "").parse().unwrap_or(f64::NAN);
        let unit = rest[length..].strip_prefix(' ').and_then(|after| {
            let unit = &after[..after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len())];
            TIMES.iter().find(|(name, _)| *name == unit)
        });
        let (end, scale) = unit.map_or((length, 1.0), |(name, scale)| (length + 1 + name.len(), *scale));
        pieces.push(Piece::Number {
            text: rest[..end].to_owned(),
            value: value * scale,
            is_time: unit.is_some(),
        });
        rest = &rest[end..];
    }
    if !words.is_empty() {
        pieces.push(Piece::Words(words));
    }
    pieces
}

/// Length in bytes of the number that a text begins with, as in `17,100` or `4.3`; 0 without one.
fn number_length(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '.').unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        text[..end].trim_end_matches([',', '.']).len()
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_ranges_and_times_are_ordered_across_units() {
        let of = ["other programs used 33 % of the CPU time", "other programs used 76 % of the CPU time"];
        assert_eq!(merged(&of).unwrap(), "other programs used 33–76 % of the CPU time");
        let of = [
            "of a p99 of 44 ms, 43.3 ms passed before the send, busy 35 % of 17,100.",
            "of a p99 of 1.26 ms, 645 µs passed before the send, busy 6 % of 9,180.",
        ];
        assert_eq!(
            merged(&of).unwrap(),
            "of a p99 of 1.26 ms – 44 ms, 645 µs – 43.3 ms passed before the send, busy 6–35 % of 9,180–17,100."
        );
    }

    #[test]
    fn sentences_that_differ_in_words_or_in_what_they_count_are_not_merged() {
        assert_eq!(merged(&["a took 3 s", "b took 3 s"]), None);
        assert_eq!(merged(&["p95 took 3 s", "p99 took 3 s"]), None);
        assert_eq!(merged(&["took 3 s", "took 3 tries"]), None);
        assert_eq!(merged(&[]), None);
    }

    #[test]
    fn one_sentence_and_equal_ones_stay_as_they_are() {
        for text in ["", "no number", "3", "ends with 3.", "1, 4 and 16", "µ7 – 8"] {
            assert_eq!(merged(&[text]).unwrap(), text);
            assert_eq!(merged(&[text, text]).unwrap(), text);
        }
    }
}
