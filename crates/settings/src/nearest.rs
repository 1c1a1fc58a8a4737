//! Suggestions for misspelled names.

/// The name among `names` that is most similar to `given`: within an edit distance of 2, plus 1 for every five letters
/// of the name.
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|(distance, name)| *distance <= 2 + name.len() / 5 && *distance < name.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Similar names, the best first: at most three. Words may be in another order or missing.
pub fn several<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let score = |known: &str| {
        let spelled = strsim::jaro_winkler(name, known);
        // Words in another order, or a word too few: `buffer_pool_size`.
        let words: Vec<&str> = name.split('_').filter(|w| w.len() > 2).collect();
        let shared = words.iter().filter(|w| known.split('_').any(|k| k == **w)).count();
        let of = known.split('_').count().max(words.len()).max(1);
        spelled.max(0.75 + 0.25 * shared as f64 / of as f64 - if shared == 0 { 1.0 } else { 0.0 })
    };
    let mut scored: Vec<(f64, &str)> = names.map(|known| (score(known), known)).collect();
    scored.retain(|(score, _)| *score > 0.85);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let best = scored.first().map_or(0.0, |(score, _)| *score);
    scored.retain(|(score, _)| *score > best - 0.04);
    scored.into_iter().take(3).map(|(_, known)| known.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_offered_only_when_it_is_near() {
        let names = ["thp.enabled", "thp.defrag", "vm.swappiness"];
        assert_eq!(nearest("thp.enable", names), Some("thp.enabled"));
        assert_eq!(nearest("vm.swapiness", names), Some("vm.swappiness"));
        assert_eq!(nearest("net.core", names), None);
        let names = ["oltp_point_select", "oltp_read_only"];
        assert_eq!(nearest("oltp_pointselect", names), Some("oltp_point_select"));
        assert_eq!(nearest("tpcc", names), None);
        assert_eq!(
            several("buffer_pool_size", ["innodb_buffer_pool_size", "sync_binlog"].into_iter()).len(),
            1
        );
    }
}
