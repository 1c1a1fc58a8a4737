//! Lists of options as help shows them.

use super::value::{Definition, Kind};

/// One line an option, with names padded to the longest of the list.
pub(crate) fn print_options(definitions: &[Definition]) -> String {
    let forms: Vec<String> = definitions.iter().map(form).collect();
    let width = forms.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for (definition, form) in definitions.iter().zip(&forms) {
        text.push_str(&format!("  {form:width$} {}{}\n", definition.help, default(definition)));
    }
    text
}

fn form(definition: &Definition) -> String {
    let name = &definition.name;
    let value = match definition.kind {
        Kind::Bool => "[=on|off]",
        Kind::Int | Kind::Double => "=N",
        Kind::Size => "=SIZE",
        Kind::Text => "=STRING",
        Kind::List => "=[LIST,...]",
        Kind::File => "=FILENAME",
    };
    format!("--{name}{value}")
}

fn default(definition: &Definition) -> String {
    match (&definition.default, definition.kind) {
        (None, _) => String::new(),
        (Some(text), _) => format!(" [{text}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_padded_and_defaults_in_brackets() {
        let list = [
            Definition::new("foo", Kind::Int, Some("3"), "a foo"),
            Definition::new("c_d", Kind::Bool, Some("on"), "a switch"),
            Definition::new("d", Kind::Text, None, "dd"),
        ];
        assert_eq!(
            print_options(&list),
            "  --foo=N        a foo [3]\n  --c_d[=on|off] a switch [on]\n  --d=STRING     dd\n"
        );
    }
}
