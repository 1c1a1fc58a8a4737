#![no_main]

#[path = "../entries/option_files.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    entry::run(data);
});
