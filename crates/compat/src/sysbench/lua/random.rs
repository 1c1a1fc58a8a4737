//! Random numbers of scripts: the distributions of `--rand-type` over a range, and texts from a pattern.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mlua::{Lua, Table};
use mydyno_stats::rng::{Rng, mix};
use mydyno_workload::distribution::{Keys, OPTIONS};
use mydyno_workload::options::Options as KeyOptions;

use super::super::options::Options;

/// The stream of random numbers of a thread.
pub(super) type Stream = Rc<RefCell<Rng>>;

/// Adds the functions of random numbers to `native`.
pub(super) fn add(
    lua: &Lua,
    native: &Table,
    options: &Options,
    stream: &Stream,
    unique: &Arc<AtomicU64>,
) -> mlua::Result<()> {
    let default = options.text("rand-type").unwrap_or("special").to_owned();
    for kind in ["uniform", "gaussian", "special", "pareto", "zipfian", "default"] {
        let of = if kind == "default" { default.as_str() } else { kind };
        let keys = key_options(options, of);
        let stream = Rc::clone(stream);
        let draw = move |_: &Lua, (low, high): (f64, f64)| {
            let (low, high) = (low as i64, high as i64);
            let span = high.saturating_sub(low).saturating_add(1).max(1).unsigned_abs();
            let key = Keys::new(&keys, span).draw(&mut stream.borrow_mut());
            Ok((low + key as i64 - 1) as f64)
        };
        native.set(format!("rand_{kind}"), lua.create_function(draw)?)?;
    }
    let of = |name: &str, value: fn(&mut Rng) -> f64| {
        let stream = Rc::clone(stream);
        native.set(name, lua.create_function(move |_, ()| Ok(value(&mut stream.borrow_mut())))?)
    };
    of("rand_uint64", |rng| (rng.next_u64() >> 11) as f64)?;
    of("rand_double", Rng::f64)?;
    let counter = Arc::clone(unique);
    // A bijection of the numbers below 2^32, so that none comes twice.
    let next = move |_: &Lua, ()| Ok(f64::from(permuted(counter.fetch_add(1, Relaxed) as u32)));
    native.set("rand_unique", lua.create_function(next)?)?;
    let rng = Rc::clone(stream);
    let text = move |lua: &Lua, pattern: mlua::String| {
        let mut text = pattern.as_bytes().to_vec();
        fill(&mut text, &mut rng.borrow_mut());
        lua.create_string(&text)
    };
    native.set("rand_string", lua.create_function(text)?)?;
    let rng = Rc::clone(stream);
    let text = move |lua: &Lua, (min, max): (u64, u64)| {
        let mut rng = rng.borrow_mut();
        let mut text = vec![b'@'; rng.between(min, max.min(1 << 30)) as usize];
        fill(&mut text, &mut rng);
        lua.create_string(&text)
    };
    native.set("rand_varstring", lua.create_function(text)?)
}

/// The options of a distribution for [`Keys`]; those that are out of range keep their defaults.
pub(super) fn key_options(options: &Options, kind: &str) -> KeyOptions {
    let mut given = vec![("distribution".to_owned(), kind.to_owned())];
    for name in ["rand-pareto-h", "rand-spec-iter", "rand-spec-pct", "rand-spec-res"] {
        let pair = (name.to_owned(), options.text(name).unwrap_or_default().to_owned());
        if KeyOptions::resolve("sysbench", &OPTIONS, std::slice::from_ref(&pair)).is_ok() {
            given.push(pair);
        }
    }
    KeyOptions::resolve("sysbench", &OPTIONS, &given)
        .or_else(|_| KeyOptions::resolve("sysbench", &OPTIONS, &[]))
        .unwrap_or_else(|_| unreachable!("defaults are valid"))
}

/// Puts a digit in the place of every `#` and a letter in the place of every `@`.
pub(super) fn fill(text: &mut [u8], rng: &mut Rng) {
    for byte in text {
        match byte {
            b'#' => *byte = b'0' + rng.below(10) as u8,
            b'@' => *byte = b'a' + rng.below(26) as u8,
            _ => {}
        }
    }
}

/// A bijection of the numbers below 2^32: four rounds of a Feistel network over their halves.
pub(super) fn permuted(number: u32) -> u32 {
    let (mut left, mut right) = (number >> 16, number & 0xffff);
    for round in 0..4_u64 {
        (left, right) = (right, left ^ (mix(u64::from(right) | round << 32) as u32 & 0xffff));
    }
    left << 16 | right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_numbers_do_not_repeat() {
        let mut seen: Vec<u32> = (0..100_000).map(permuted).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 100_000);
    }

    #[test]
    fn patterns_are_filled_with_digits_and_letters() {
        let mut text = *b"##-@@-x";
        fill(&mut text, &mut Rng::from_seed(1));
        assert!(text[0].is_ascii_digit() && text[3].is_ascii_lowercase() && text[6] == b'x', "{text:?}");
    }
}
