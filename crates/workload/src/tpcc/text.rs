//! Random texts of the population (clause 4.3.2).

use mydyno_stats::rng::Rng;

const ALPHANUMERIC: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
const ORIGINAL: &str = "ORIGINAL";

/// The last name of a number below 1,000: a syllable for each of its three digits (clause 4.3.2.3).
pub fn last_name(number: u64) -> String {
    let syllable = |digit: u64| SYLLABLES[(digit % 10) as usize];
    [syllable(number / 100), syllable(number / 10), syllable(number)].concat()
}

/// Letters and digits, from `min` to `max` of them.
pub fn a_string(rng: &mut Rng, min: u64, max: u64) -> String {
    let length = rng.between(min, max);
    (0..length).map(|_| char::from(ALPHANUMERIC[rng.below(ALPHANUMERIC.len() as u64) as usize])).collect()
}

/// Digits, from `min` to `max` of them.
pub fn n_string(rng: &mut Rng, min: u64, max: u64) -> String {
    let length = rng.between(min, max);
    (0..length).map(|_| char::from(b'0' + rng.below(10) as u8)).collect()
}

/// A zip code: four random digits and `11111` (clause 4.3.2.7).
pub fn zip(rng: &mut Rng) -> String {
    n_string(rng, 4, 4) + "11111"
}

/// I_DATA or S_DATA: 26 to 50 letters and digits; one in ten holds ORIGINAL at a random place (clause 4.3.3.1).
pub fn item_data(rng: &mut Rng) -> String {
    let mut data = a_string(rng, 26, 50);
    if rng.below(10) == 0 {
        let place = rng.between(0, (data.len() - ORIGINAL.len()) as u64) as usize;
        data.replace_range(place..place + ORIGINAL.len(), ORIGINAL);
    }
    data
}

/// Whether I_DATA or S_DATA holds ORIGINAL: an order line is of brand B where both do, else G (clause 2.4.2.2).
pub fn is_original(data: &[u8]) -> bool {
    data.windows(ORIGINAL.len()).any(|window| window == ORIGINAL.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_those_of_the_specification() {
        // 371 is the example of clause 4.3.2.3.
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        assert_eq!((last_name(0), last_name(999)), ("BARBARBAR".to_owned(), "EINGEINGEING".to_owned()));
        let names: std::collections::BTreeSet<String> = (0..1000).map(last_name).collect();
        assert_eq!(names.len(), 1000);
        assert_eq!(names.iter().map(String::len).max(), Some(15));
    }

    #[test]
    fn texts_have_their_lengths_and_characters() {
        let mut rng = Rng::from_seed(1);
        let mut lengths = std::collections::BTreeSet::new();
        for _ in 0..2000 {
            let text = a_string(&mut rng, 14, 24);
            assert!(text.bytes().all(|b| b.is_ascii_alphanumeric()), "{text}");
            lengths.insert(text.len());
            let zip = zip(&mut rng);
            assert!(zip.len() == 9 && zip.ends_with("11111") && zip.bytes().all(|b| b.is_ascii_digit()));
            assert!(n_string(&mut rng, 16, 16).bytes().all(|b| b.is_ascii_digit()));
        }
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), (14..=24).collect::<Vec<_>>());
    }

    #[test]
    fn one_item_in_ten_is_original_at_any_place() {
        let mut rng = Rng::from_seed(2);
        let (mut original, mut at_the_start, mut at_the_end) = (0, 0, 0);
        for _ in 0..40_000 {
            let data = item_data(&mut rng);
            assert!((26..=50).contains(&data.len()));
            original += u32::from(is_original(data.as_bytes()));
            at_the_start += u32::from(data.starts_with(ORIGINAL));
            at_the_end += u32::from(data.ends_with(ORIGINAL));
        }
        // 4,000 ± 5 standard deviations of 60.
        assert!((3_700..=4_300).contains(&original), "{original}");
        assert!(at_the_start > 50 && at_the_end > 50, "{at_the_start} {at_the_end}");
    }
}
