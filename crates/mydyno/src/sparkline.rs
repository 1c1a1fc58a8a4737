//! A series in one line of text.

use std::collections::VecDeque;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The last values of a series, drawn from 0 to the largest of them.
#[derive(Debug, Clone)]
pub struct Sparkline {
    values: VecDeque<f64>,
    width: usize,
}

impl Sparkline {
    /// One that shows at most `width` values.
    pub fn new(width: usize) -> Self {
        Self { values: VecDeque::with_capacity(width + 1), width }
    }

    /// Adds a value, which must not be negative.
    pub fn push(&mut self, value: f64) {
        self.values.push_back(value);
        if self.values.len() > self.width {
            self.values.pop_front();
        }
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.values.clear();
    }

    /// A character a value, of the last ones as many as there is place for.
    pub fn text(&self, most_values: usize) -> String {
        let most = self.values.iter().copied().fold(0.0, f64::max);
        let level = |value: &f64| {
            let share = if most > 0.0 { value / most } else { 0.0 };
            LEVELS[((share * LEVELS.len() as f64) as usize).min(LEVELS.len() - 1)]
        };
        self.values.iter().skip(self.values.len().saturating_sub(most_values)).map(level).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_drawn_from_nothing_to_the_largest_and_old_ones_go() {
        let mut line = Sparkline::new(4);
        assert_eq!(line.text(4), "");
        for value in [100.0, 0.0, 5.0, 10.0, 7.5] {
            line.push(value);
        }
        assert_eq!((line.text(9), line.text(2), line.text(0)), ("▁▅█▇".into(), "█▇".into(), String::new()));
        line.clear();
        line.push(0.0);
        assert_eq!(line.text(4), "▁");
    }
}
