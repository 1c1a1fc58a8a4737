//! Option files and DSNs of any text.

use mydyno_wire::Environment;
use mydyno_wire::target::{TargetOptions, parse_option_file, resolve};

pub fn run(data: &[u8]) -> String {
    let lines = parse_option_file(data, "fuzz.cnf".as_ref());
    let environment = Environment {
        variables: Default::default(),
        root: "/nonexistent".into(),
        home: None,
        user: "fuzz".into(),
        folder: "/".into(),
    };
    let dsn = format!("mysql://{}", String::from_utf8_lossy(data));
    let target = resolve(&TargetOptions { dsn: Some(dsn), ..TargetOptions::default() }, &environment);
    let reported = match target {
        Ok(target) => format!("{:?} {:?} {:?}", target.endpoint, target.tls.mode, target.compression),
        Err(errors) => errors.iter().map(|error| format!("{error:.60}")).collect(),
    };
    let kinds: String = match &lines {
        Ok(lines) => lines.iter().take(20).map(|line| format!("{line:.12?}")).collect(),
        Err((_, detail)) => detail.clone(),
    };
    format!("{kinds} {reported}")
}
