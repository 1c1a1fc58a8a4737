#![no_main]

#[path = "../entries/packets.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    entry::run(data);
});
