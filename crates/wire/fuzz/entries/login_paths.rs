//! Login path files of any bytes.

use mydyno_wire::target::{decrypt_login_path, parse_option_file};

pub fn run(data: &[u8]) -> String {
    match decrypt_login_path(data) {
        Ok(text) => {
            assert!(text.len() <= data.len(), "more came out than was in");
            format!("{:?}", parse_option_file(&text, "mylogin".as_ref()))
        }
        Err(error) => error,
    }
}
