//! Where the text of a script comes from.

use std::path::Path;

use crate::streams::Streams;

/// The scripts that the program carries, by module name.
const BUNDLED: &[(&str, &str)] = &[
    ("oltp_common", include_str!("../../../lua/oltp_common.lua")),
    ("oltp_read_write", include_str!("../../../lua/oltp_read_write.lua")),
    ("oltp_read_only", include_str!("../../../lua/oltp_read_only.lua")),
    ("oltp_write_only", include_str!("../../../lua/oltp_write_only.lua")),
    ("oltp_point_select", include_str!("../../../lua/oltp_point_select.lua")),
    ("oltp_update_index", include_str!("../../../lua/oltp_update_index.lua")),
    ("oltp_update_non_index", include_str!("../../../lua/oltp_update_non_index.lua")),
    ("oltp_delete", include_str!("../../../lua/oltp_delete.lua")),
    ("oltp_insert", include_str!("../../../lua/oltp_insert.lua")),
    ("bulk_insert", include_str!("../../../lua/bulk_insert.lua")),
    ("select_random_points", include_str!("../../../lua/select_random_points.lua")),
    ("select_random_ranges", include_str!("../../../lua/select_random_ranges.lua")),
];

/// A script before it runs.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// Its name in messages.
    pub(crate) name: String,
    /// Its path as the script sees it; `None` for the input.
    pub(crate) path: Option<String>,
    pub(crate) text: Vec<u8>,
    /// Name of the bundled script that it is.
    pub(crate) module: Option<&'static str>,
}

/// The text of a script that the program carries.
pub(crate) fn bundled(module: &str) -> Option<&'static str> {
    BUNDLED.iter().find(|(name, _)| *name == module).map(|(_, text)| *text)
}

impl Script {
    /// The script that a word of the command line names: a file, a module of the search path, or a bundled one. No word and
    /// `-` mean the input.
    ///
    /// # Errors
    /// The text of a fatal line.
    pub(crate) fn find(word: Option<&str>, streams: &Streams) -> Result<Self, String> {
        let Some(word) = word.filter(|word| *word != "-") else {
            let text = streams.read_input().map_err(|error| format!("cannot read the script: {error}"))?;
            return Ok(Self { name: "stdin".to_owned(), path: None, text, module: None });
        };
        let file_name = word.rsplit('/').next().unwrap_or(word);
        if Path::new(word).is_file() {
            let text = std::fs::read(word).map_err(|error| format!("cannot open {word}: {error}"))?;
            return Ok(Self { name: file_name.to_owned(), path: Some(word.to_owned()), text, module: None });
        }
        let mut in_path = search_path().into_iter().map(|pattern| pattern.replace('?', word));
        if let Some(path) = in_path.find(|path| Path::new(path).is_file()) {
            let text = std::fs::read(&path).map_err(|error| format!("cannot open {path}: {error}"))?;
            return Ok(Self { name: word.to_owned(), path: Some(path), text, module: None });
        }
        // Paths of a sysbench that is not installed lead to the script of the same name.
        let of_installation = word.contains("sysbench/").then(|| file_name.trim_end_matches(".lua"));
        let known = |name: &str| BUNDLED.iter().find(|(module, _)| *module == name);
        match known(word).or_else(|| known(of_installation?)) {
            Some((module, text)) => Ok(Self {
                name: file_name.to_owned(),
                path: Some(word.to_owned()),
                text: text.as_bytes().to_vec(),
                module: Some(module),
            }),
            None => Err(format!("Cannot find benchmark '{word}': no such built-in test, file or module")),
        }
    }
}

/// Patterns of files that `require` and the command line look for; `?` stands for the name. LUA_PATH comes first, and `;;`
/// in it stands for the others.
pub(crate) fn search_path() -> Vec<String> {
    let home = std::env::var("HOME").unwrap_or_default();
    let usual = format!(
        "./?.lua;./?/init.lua;./src/lua/?.lua;{home}/.luarocks/share/lua/5.1/?.lua;\
         {home}/.luarocks/share/lua/5.1/?/init.lua;/usr/local/share/lua/5.1/?.lua;/usr/share/lua/5.1/?.lua"
    );
    let path = match std::env::var("LUA_PATH") {
        Ok(given) => given.replace(";;", &format!(";{usual};")),
        Err(_) => usual,
    };
    path.split(';').filter(|pattern| !pattern.is_empty()).map(str::to_owned).collect()
}
