//! Text as lines of a limited width.

/// Lines of at most `width` characters, broken at spaces; a longer word has its own line. Each line after the first begins with
/// `indent` spaces, and the first is not broken before that column: its label stays beside its first word.
pub fn wrapped(text: &str, width: usize, indent: usize) -> Vec<String> {
    let (mut lines, mut column) = (vec![String::new()], 0);
    // Spaces belong to the word behind them, so that the beginning of the text stays as it is.
    let mut rest = text;
    while !rest.is_empty() {
        let spaces = rest.len() - rest.trim_start_matches(' ').len();
        let end = rest[spaces..].find(' ').map_or(rest.len(), |at| spaces + at);
        let (word, after) = rest.split_at(end);
        let length = word.chars().count();
        if column > indent && column + length > width {
            lines.push(" ".repeat(indent) + &word[spaces..]);
            column = indent + length - spaces;
        } else if let Some(line) = lines.last_mut() {
            line.push_str(word);
            column += length;
        }
        rest = after;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_are_broken_at_spaces_and_long_words_stay_whole() {
        assert_eq!(wrapped("one two three", 7, 0), ["one two", "three"]);
        assert_eq!(wrapped("a /very/long/path b", 6, 0), ["a", "/very/long/path", "b"]);
        assert_eq!(wrapped("one  two", 4, 0), ["one", "two"]);
        assert_eq!(wrapped("", 5, 0), [""]);
    }

    #[test]
    fn later_lines_are_indented_and_a_label_is_not_parted_from_its_first_word() {
        let long = "x".repeat(50);
        assert_eq!(wrapped("Why  one two three", 12, 5), ["Why  one two", "     three"]);
        assert_eq!(wrapped(&format!("Why  {long} y"), 30, 5), [format!("Why  {long}"), "     y".to_owned()]);
    }
}
