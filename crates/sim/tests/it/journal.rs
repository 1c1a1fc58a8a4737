//! The figures on the pages of the journal, compared with those of the code.

/// Cells of the row that begins with a name below a heading of a page of the journal.
pub fn cells_of(page: &str, heading: &str, name: &str) -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/journal");
    let page = std::fs::read_to_string(format!("{folder}/{page}")).unwrap();
    let section = page.split_once(heading).unwrap_or_else(|| panic!("no heading {heading}")).1;
    let start = format!("| {name} | ");
    let row = section.lines().find(|line| line.starts_with(&start));
    let line = row.unwrap_or_else(|| panic!("no row {name}"));
    line[start.len()..].trim_end_matches(" |").split(" | ").map(str::to_owned).collect()
}

/// Whether two cells agree to half a percent: another platform's logarithm may push a seed over the line.
pub fn alike(a: &str, b: &str) -> bool {
    let numbers =
        |cell: &str| -> Vec<f64> { cell.split_whitespace().filter_map(|word| word.parse().ok()).collect() };
    let (a, b) = (numbers(a), numbers(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 0.5)
}
