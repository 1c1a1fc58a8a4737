//! Option files and DSNs of any text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mydyno_wire::Environment;
use mydyno_wire::target::{TargetOptions, parse_option_file, resolve};

fuzz_target!(|data: &[u8]| {
    let _ = parse_option_file(data, "fuzz.cnf".as_ref());
    let environment = Environment {
        variables: Default::default(),
        root: "/nonexistent".into(),
        home: None,
        user: "fuzz".into(),
        folder: "/".into(),
    };
    let dsn = format!("mysql://{}", String::from_utf8_lossy(data));
    let _ = resolve(&TargetOptions { dsn: Some(dsn), ..TargetOptions::default() }, &environment);
});
