//! Sentences on a terminal: lines that are longer than it is wide are broken between words.

use mydyno_model::wrap::wrapped;

/// Widest indentation of what follows in a line's label, in columns; behind a wider one it begins two columns in.
const WIDEST_LABEL: usize = 40;
/// Fewest columns of text beside an indentation.
const NARROWEST: usize = 20;

/// The lines of a text, none longer than `width` columns unless a word is. The rest of a line stands below its first
/// words: behind the label, which two spaces end, else as far in as the line begins.
pub fn folded(text: &str, width: usize) -> String {
    text.lines().map(|line| fold(line, width)).collect::<Vec<_>>().join("\n")
}

fn fold(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    wrapped(line, width, indentation(line, width)).join("\n")
}

/// The column at which the rest of a line begins.
fn indentation(line: &str, width: usize) -> usize {
    let leading = line.chars().take_while(|c| *c == ' ').count();
    let label = line[leading..].find("  ").map(|at| {
        let gap = &line[leading + at..];
        line[..leading + at].chars().count() + gap.chars().take_while(|c| *c == ' ').count()
    });
    let most = WIDEST_LABEL.min(width.saturating_sub(NARROWEST));
    label.filter(|column| *column <= most).unwrap_or(leading + 2).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_go_on_behind_their_label_and_short_ones_stay() {
        let text = "Why  one two three four five six seven eight nine ten\n\n  short";
        let expected = "Why  one two three four five\n     six seven eight nine ten\n\n  short";
        assert_eq!(folded(text, 30), expected);
        assert_eq!(folded("one two three four five six seven", 24), "one two three four five\n  six seven");
    }
}
