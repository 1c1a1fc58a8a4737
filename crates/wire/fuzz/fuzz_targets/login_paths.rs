//! Login path files of any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mydyno_wire::target::{decrypt_login_path, parse_option_file};

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = decrypt_login_path(data) {
        assert!(text.len() <= data.len());
        let _ = parse_option_file(&text, "mylogin".as_ref());
    }
});
