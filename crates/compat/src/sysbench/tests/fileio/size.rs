//! Sizes in words.

/// Bytes of a MiB.
pub(super) const MIB: f64 = 1_048_576.0;

/// A number of bytes with five digits and a unit.
pub(super) fn size_text(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit < 4 {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    let digits = 4_usize.saturating_sub(value.max(1.0).log10() as usize);
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{}", ["B", "KiB", "MiB", "GiB", "TiB"][unit])
}
