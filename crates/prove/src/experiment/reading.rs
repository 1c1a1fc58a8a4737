//! Parses the file of an experiment.

use mydyno_model::experiment::definition::Definition;

use super::mistake::{Mistake, place};

/// The longest file of an experiment, in bytes.
const LONGEST_FILE: usize = 256 << 10;

/// Parses a file. Unknown keys are mistakes.
///
/// # Errors
/// The first mistake of its form, with line, column and the most similar name.
pub(super) fn read(file: &str, text: &str) -> Result<Definition, Mistake> {
    let mistake = |place, text| Mistake { file: file.to_owned(), place, text };
    if text.len() > LONGEST_FILE {
        return Err(mistake(None, format!("an experiment has at most {} KiB", LONGEST_FILE >> 10)));
    }
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let place = error.span().map(|span| place(text, span.start));
        let message = error.message().trim();
        let near = nearest(message).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        mistake(place, format!("{message}{near}"))
    })
}

/// The name most similar to the unknown one of a message like "unknown field `delat`, expected one of `delta`, `name`".
fn nearest(message: &str) -> Option<String> {
    let mut names = message.split('`').skip(1).step_by(2);
    let given = names.next().filter(|_| message.starts_with("unknown "))?;
    mydyno_settings::nearest(given, names).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_told_with_its_place_and_the_nearest_name() {
        let error = read("x.toml", "name = \"x\"\nquestoin = \"?\"\n").unwrap_err().to_string();
        assert!(error.starts_with("x.toml:2:1: unknown field `questoin`"), "{error}");
        assert!(error.ends_with("did you mean `question`?"), "{error}");
    }

    #[test]
    fn what_is_no_toml_has_its_place() {
        let error = read("x.toml", "name = \"x\"\nquestion = \n").unwrap_err();
        assert_eq!(error.place.map(|(line, _)| line), Some(2), "{error}");
    }
}
