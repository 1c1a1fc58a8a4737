//! Nouns that are written with both numbers, as in `3 account(s) have`: one form once the number is known.

/// Verbs of the plural behind such a noun whose singular is not the verb with an s.
const IRREGULAR: [(&str, &str); 4] = [("have", "has"), ("are", "is"), ("were", "was"), ("do", "does")];

/// Verbs that the claims write behind such a noun, whose singular has an s.
const REGULAR: [&str; 29] = [
    "apply", "ask", "begin", "belong", "differ", "end", "fetch", "find", "give", "hold", "keep", "lie",
    "lock", "log", "make", "name", "prepare", "put", "read", "refer", "run", "seem", "send", "sleep",
    "start", "take", "use", "wait", "write",
];

/// The same for a text that holds names, as of a file `job(s)`, which stay as they are.
pub fn numbered_but(text: &str, names: &[String]) -> String {
    // A character that no server and no file system gives meaning to keeps the brackets apart meanwhile.
    const APART: &str = "\u{e000}";
    let mut text = text.to_owned();
    for name in names {
        text =
            text.replace(name.as_str(), &name.replace("(s)", "(\u{e000}s)").replace("(es)", "(\u{e000}es)"));
    }
    numbered(&text).replace(APART, "")
}

/// The text with each `noun(s)` or `noun(es)` in the number of the count before it; one without a count keeps both forms.
pub fn numbered(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut singular = None;
    // Words behind the noun until one that may be its verb: none, or the two of "of statement".
    let mut until_verb = None;
    for word in text.split_inclusive(' ') {
        let bare = word.trim_end();
        if let Some(place) = bare.find("(s)").or_else(|| bare.find("(es)")) {
            let (noun, rest) = bare.split_at(place);
            let ending = if rest.starts_with("(s)") { "s" } else { "es" };
            let rest = &rest[ending.len() + 2..];
            match singular {
                Some(true) => out.extend([noun, rest]),
                Some(false) => out.extend([noun, ending, rest]),
                None => out.push_str(bare),
            }
            until_verb = (singular == Some(true) && rest.is_empty()).then_some(0);
        } else if until_verb == Some(0) && bare == "of" {
            out.push_str(bare);
            until_verb = Some(1);
        } else if until_verb == Some(1) {
            out.push_str(bare);
            until_verb = Some(0);
        } else if until_verb.take().is_some()
            && let Some(verb) = third_person(bare)
        {
            out.push_str(&verb);
        } else {
            out.push_str(bare);
            let counted = bare.trim_start_matches('(');
            if counted.starts_with(|c: char| c.is_ascii_digit())
                && counted.ends_with(|c: char| c.is_ascii_digit())
            {
                singular = Some(counted == "1");
            } else if bare.ends_with(['.', ':', ';', ',']) {
                singular = None;
            }
        }
        out.push_str(&word[bare.len()..]);
    }
    out
}

fn third_person(verb: &str) -> Option<String> {
    if let Some((_, singular)) = IRREGULAR.iter().find(|(plural, _)| *plural == verb) {
        return Some((*singular).to_owned());
    }
    REGULAR.contains(&verb).then(|| match verb {
        "fetch" => "fetches".to_owned(),
        "apply" => "applies".to_owned(),
        _ => format!("{verb}s"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_brackets() {
        let names = ["job(s).sql".to_owned()];
        assert_eq!(numbered_but("1 file(s) are open: job(s).sql", &names), "1 file is open: job(s).sql");
    }

    #[test]
    fn nouns_and_their_verbs_take_the_number_of_their_count() {
        for (written, told) in [
            ("1 account(s) have no user name.", "1 account has no user name."),
            ("3 account(s) have no user name.", "3 accounts have no user name."),
            ("1 index(es) begin another one", "1 index begins another one"),
            ("12,400 session(s) wait", "12,400 sessions wait"),
            ("1 kind(s) of statement take a second", "1 kind of statement takes a second"),
            ("Of 21 table(s), 1 column(s) are FLOAT", "Of 21 tables, 1 column is FLOAT"),
            ("the account(s) are", "the account(s) are"),
            ("1 time(s), the last 3 s ago", "1 time, the last 3 s ago"),
        ] {
            assert_eq!(numbered(written), told);
        }
    }
}
