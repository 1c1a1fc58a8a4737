//! Option files: lines `name = value`, comments with `#`, values in quotes.

/// The options of a file in order.
pub(crate) fn options(text: &str) -> Vec<(String, Option<String>)> {
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .map(|line| {
            let at = line.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(line.len());
            let name = line[..at].trim_start_matches("--").to_owned();
            let rest = line[at..].trim_start().trim_start_matches('=').trim();
            let value = rest.trim_matches(['"', '\'']).trim_end_matches(',');
            (name, Some(value.to_owned()).filter(|value| !value.is_empty()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_values_comments_and_quotes_are_told_apart() {
        let read = options("# c\nthreads=3\n events = \"4\" # d\nhistogram\nmysql-host=a,b\n");
        let pairs: Vec<(&str, Option<&str>)> = read.iter().map(|(n, v)| (n.as_str(), v.as_deref())).collect();
        assert_eq!(
            pairs,
            [("threads", Some("3")), ("events", Some("4")), ("histogram", None), ("mysql-host", Some("a,b"))]
        );
    }
}
