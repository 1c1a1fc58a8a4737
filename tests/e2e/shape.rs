//! The shape of the source, tests included: no circle of more than two files inside a crate, no long file, no long function.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::house::root;

/// Files in a circle of one crate at most.
const LARGEST_CIRCLE: usize = 2;
/// Lines of a file at most.
const LONGEST_FILE: usize = 500;
/// Lines of a function at most, from its name to its closing brace.
const LONGEST_FUNCTION: usize = 100;

/// Source files below a folder, in order.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Name and source folder of every crate.
fn crates() -> Vec<(String, PathBuf)> {
    let mut crates: Vec<(String, PathBuf)> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("src").is_dir())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path.join("src")))
        .collect();
    crates.sort();
    crates
}

/// The text without line comments and without its test module, which rustfmt puts at the margin.
fn without_tests(text: &str) -> String {
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// Modules of a crate: path of names to file, and what each file re-exports by name.
#[derive(Default)]
struct Modules {
    files: BTreeMap<Vec<String>, PathBuf>,
    exports: BTreeMap<Vec<String>, BTreeMap<String, Vec<String>>>,
}

impl Modules {
    fn of(source: &Path) -> Self {
        let mut modules = Self::default();
        let files = sources(source);
        for file in &files {
            let relative = file.strip_prefix(source).unwrap().with_extension("");
            let mut names: Vec<String> =
                relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if matches!(names.last().map(String::as_str), Some("mod" | "lib" | "main")) {
                names.pop();
            }
            modules.files.insert(names, file.clone());
        }
        for (module, file) in &modules.files {
            let code = without_tests(&fs::read_to_string(file).unwrap());
            let mut names = BTreeMap::new();
            for (path, is_export) in uses(&code) {
                if let (true, Some(name)) = (is_export, path.last()) {
                    names.insert(name.clone(), path.clone());
                }
            }
            modules.exports.insert(module.clone(), names);
        }
        modules
    }

    /// The file that a path of a module leads to, through re-exports; `None` for other crates.
    fn file_of(&self, from: &[String], path: &[String], depth: usize) -> Option<&PathBuf> {
        let (mut at, mut rest): (Vec<String>, &[String]) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (from.to_vec(), &path[1..]),
            "super" => (from[..from.len().checked_sub(1)?].to_vec(), &path[1..]),
            name => {
                let mut below = from.to_vec();
                below.push(name.to_owned());
                if !self.files.contains_key(&below) {
                    return None;
                }
                (below, &path[1..])
            }
        };
        while let Some((name, after)) = rest.split_first() {
            if name == "super" {
                at.pop()?;
                rest = after;
                continue;
            }
            let mut below = at.clone();
            below.push(name.clone());
            if self.files.contains_key(&below) {
                (at, rest) = (below, after);
                continue;
            }
            let export = self.exports.get(&at).and_then(|names| names.get(name));
            if let Some(export) = export.filter(|_| depth < 8) {
                return self.file_of(&at, export, depth + 1).or_else(|| self.files.get(&at));
            }
            break;
        }
        self.files.get(&at)
    }

    /// Which files each file uses.
    fn edges(&self) -> BTreeMap<&Path, BTreeSet<&Path>> {
        let mut edges: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
        for (module, file) in &self.files {
            let code = without_tests(&fs::read_to_string(file).unwrap());
            let imported = uses(&code).into_iter().filter(|(_, is_export)| !is_export).map(|(path, _)| path);
            for path in imported.chain(inline_paths(&code)) {
                if let Some(to) = self.file_of(module, &path, 0).filter(|to| *to != file) {
                    edges.entry(file).or_default().insert(to);
                }
            }
        }
        edges
    }
}

/// Paths of the `use` declarations, each with whether it is a re-export.
fn uses(code: &str) -> Vec<(Vec<String>, bool)> {
    let mut found = Vec::new();
    for statement in code.split(';') {
        let Some(at) = statement.rfind("use ").filter(|at| {
            let before = &statement[..*at];
            before.is_empty() || before.ends_with(['\n', ' ', ')'])
        }) else {
            continue;
        };
        let line = statement[..at].rsplit('\n').next().unwrap_or_default();
        let mut paths = Vec::new();
        expand(&[], statement[at + 4..].trim(), &mut paths);
        found.extend(paths.into_iter().map(|path| (path, line.trim_start().starts_with("pub"))));
    }
    found
}

/// The paths of a tree of imports.
fn expand(before: &[String], tree: &str, paths: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    match tree.find('{') {
        Some(open) => {
            let mut prefix = before.to_vec();
            prefix.extend(names(&tree[..open]));
            let inner = tree[open + 1..].trim_end();
            let inner = inner.strip_suffix('}').unwrap_or(inner);
            let (mut depth, mut start) = (0, 0);
            for (at, letter) in inner.char_indices() {
                match letter {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        expand(&prefix, &inner[start..at], paths);
                        start = at + 1;
                    }
                    _ => {}
                }
            }
            expand(&prefix, &inner[start..], paths);
        }
        None if tree.is_empty() => {}
        None => {
            let mut path = before.to_vec();
            path.extend(names(tree.split(" as ").next().unwrap_or_default()).filter(|name| name != "self"));
            paths.push(path);
        }
    }
}

fn names(path: &str) -> impl Iterator<Item = String> + '_ {
    path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Paths in the code that begin with `crate::` or `super::`.
fn inline_paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let end = code[at..].find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
            found.push(names(&code[at..end.map_or(code.len(), |end| at + end)]).collect());
        }
    }
    found
}

/// Groups of files of which each reaches all others.
fn circles<'a>(edges: &BTreeMap<&'a Path, BTreeSet<&'a Path>>) -> Vec<BTreeSet<&'a Path>> {
    let reach = |from: &'a Path| {
        let mut seen: BTreeSet<&Path> = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            for to in edges.get(at).into_iter().flatten() {
                if seen.insert(to) {
                    open.push(to);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = edges.keys().map(|file| (*file, reach(file))).collect();
    let mut circles: Vec<BTreeSet<&Path>> = Vec::new();
    for (file, to) in &reached {
        let circle: BTreeSet<&Path> =
            to.iter().copied().filter(|other| reached.get(other).is_some_and(|r| r.contains(file))).collect();
        if circle.len() > 1 && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

#[test]
fn no_circle_has_more_than_two_files() {
    let mut problems = Vec::new();
    for (name, source) in crates() {
        let modules = Modules::of(&source);
        let edges = modules.edges();
        for circle in circles(&edges).into_iter().filter(|circle| circle.len() > LARGEST_CIRCLE) {
            let files: Vec<_> = circle.iter().map(|f| f.strip_prefix(&source).unwrap()).collect();
            problems.push(format!("{name}: {} files: {files:?}", files.len()));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn circles_are_found_through_imports_re_exports_and_paths() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("circles-{}", std::process::id()));
    fs::create_dir_all(folder.join("part")).unwrap();
    for (file, text) in [
        ("lib.rs", "mod a;\nmod b;\nmod part;\npub use part::Thing;\n"),
        ("a.rs", "use crate::{Thing, b::{self, One}};\n// use crate::part::none;\n"),
        ("b.rs", "fn f() { crate::part::inner::g() }\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
        ("part/mod.rs", "mod inner;\npub use inner::Thing;\n"),
        ("part/inner.rs", "use super::super::a::What;\n"),
    ] {
        fs::write(folder.join(file), text).unwrap();
    }
    let modules = Modules::of(&folder);
    let edges = modules.edges();
    let circles = circles(&edges);
    let expected: BTreeSet<PathBuf> =
        ["a.rs", "b.rs", "part/inner.rs"].into_iter().map(|f| folder.join(f)).collect();
    let found: Vec<BTreeSet<PathBuf>> =
        circles.iter().map(|c| c.iter().map(|f| f.to_path_buf()).collect()).collect();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(found, [expected]);
}

/// Name, first line and length of the functions of a file that rustfmt has formatted.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        let Some(at) = code.find("fn ").filter(|at| {
            let words = &code[..*at];
            let is_word = |w: &str| matches!(w, "pub" | "const" | "async" | "unsafe" | "extern" | "\"C\"");
            words.split_whitespace().all(|w| is_word(w) || w.starts_with("pub("))
        }) else {
            continue;
        };
        let name: String = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let close = format!("{indent}}}");
        // On one line, declared without a body, or up to the brace below its own beginning.
        let declared = format!("{indent})");
        let ends = |l: &&str| **l == close || l.starts_with(&declared) && l.ends_with(';');
        let length = match line.ends_with(['}', ';']) {
            true => 1,
            false => lines[number..].iter().position(ends).map_or(1, |length| length + 1),
        };
        found.push((name, length));
    }
    found
}

#[test]
fn no_file_and_no_function_is_long() {
    let mut problems = Vec::new();
    for file in sources(&root().join("crates")).into_iter().chain(sources(&root().join("tests"))) {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(root()).unwrap().display();
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            problems.push(format!("{name} has {lines} lines"));
        }
        for (function, lines) in functions(&text).into_iter().filter(|(_, lines)| *lines > LONGEST_FUNCTION) {
            problems.push(format!("{name}: fn {function} has {lines} lines"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
