//! The evidence of an evaluation.

/// Facts and comparisons that decide a value, each once, in the order of reading.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    pub facts: Vec<String>,
    pub steps: Vec<String>,
}

impl Trace {
    /// Adds the evidence of another trace.
    pub fn add(&mut self, other: Self) {
        for fact in other.facts {
            self.fact(&fact);
        }
        for step in other.steps {
            self.step(step);
        }
    }

    pub fn step(&mut self, text: String) {
        if !self.steps.contains(&text) {
            self.steps.push(text);
        }
    }

    pub fn fact(&mut self, id: &str) {
        if !self.facts.iter().any(|f| f == id) {
            self.facts.push(id.to_owned());
        }
    }
}
