//! The command lines that README and the documentation show.

use std::fs;
use std::path::{Path, PathBuf};

/// A command line as a page shows it.
pub struct CommandLine {
    /// `PAGE:LINE`.
    pub place: String,
    /// Words as a shell takes them, `mydyno` or `make` first.
    pub words: Vec<String>,
    /// Whether it stands in a block of its own, to be copied, and not inside a sentence.
    pub block: bool,
}

/// All lines of the pages at the top and below `docs`, without the generated reference.
pub fn of_documents(root: &Path) -> Vec<CommandLine> {
    let tops = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];
    let mut pages: Vec<PathBuf> = tops.iter().map(|page| root.join(page)).collect();
    below(&root.join("docs"), &mut pages);
    pages.retain(|page| !page.starts_with(root.join("docs/reference")));
    pages.sort();
    let mut found = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let name = page.strip_prefix(root).unwrap().display().to_string();
        of_page(&name, &text, &mut found);
    }
    found
}

/// The pages below a folder.
pub fn below(folder: &Path, pages: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            below(&path, pages);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
}

/// The lines of a page of this name, blocks without fences included.
pub fn of_page(name: &str, text: &str, found: &mut Vec<CommandLine>) {
    let mut fenced = false;
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let place = format!("{name}:{}", number + 1);
        if fenced || line.starts_with("    ") {
            let mut whole = line.trim().to_owned();
            if !is_command(&whole) {
                continue;
            }
            while let Some(open) = whole.strip_suffix('\\') {
                let next = lines.next().map(|(_, next)| next.trim()).unwrap_or_default();
                whole = format!("{} {next}", open.trim_end());
            }
            found.push(CommandLine { place, words: words(&whole), block: true });
            continue;
        }
        for code in line.split('`').skip(1).step_by(2).filter(|code| is_command(code)) {
            found.push(CommandLine { place: place.clone(), words: words(code), block: false });
        }
    }
}

fn is_command(text: &str) -> bool {
    text.starts_with("mydyno ") || text.starts_with("make ")
}

/// Splits a line as a shell does. It ends before a comment, a pipe, a redirection, and where two spaces begin an explanation.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                word.extend(characters.by_ref().take_while(|next| *next != character));
            }
            ' ' => {
                words.extend(word.take());
                if characters.peek() == Some(&' ') {
                    break;
                }
            }
            '#' | '|' | '>' | '&' | ';' if word.is_none() => break,
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}
