//! The outermost functions of threads, which a stack that was copied in part lacks.
//!
//! Servers have stacks of more than is copied (MySQL 8.0 in its optimizer: above 16 KiB). What a thread does as a whole, as to serve a
//! connection, is told by its outermost functions, and these are the same in the complete stacks of the thread.

use std::collections::HashMap;

/// Stands between the outermost functions and those of a stack that was copied in part.
pub const CUT: u64 = u64::MAX;

/// Functions that are kept: those of the C library, of the instrumentation, and of the server up to the loop of statements.
const OUTERMOST: usize = 5;

/// Threads that are kept. Each connection may be a thread of its own.
const THREADS: usize = 20_000;

/// The outermost return addresses of threads, innermost first.
#[derive(Debug, Default)]
pub struct Roots {
    by_thread: HashMap<u32, Vec<u64>>,
}

impl Roots {
    /// A stack, innermost first, as far as it can be told: a complete one as it is, another with the outermost functions of its thread.
    pub fn joined(&mut self, tid: u32, mut stack: Vec<u64>, complete: bool) -> Vec<u64> {
        if stack.is_empty() {
            return stack;
        }
        if !complete {
            if let Some(root) = self.by_thread.get(&tid) {
                stack.push(CUT);
                stack.extend(root);
            }
            return stack;
        }
        if self.by_thread.len() >= THREADS {
            self.by_thread.clear();
        }
        let root = &stack[stack.len().saturating_sub(OUTERMOST)..];
        match self.by_thread.get_mut(&tid) {
            Some(known) if known == root => {}
            Some(known) => root.clone_into(known),
            None => drop(self.by_thread.insert(tid, root.to_vec())),
        }
        stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_that_was_cut_has_the_outermost_functions_of_its_threads_latest_complete_one() {
        let mut roots = Roots::default();
        assert_eq!(roots.joined(7, vec![90, 80], false), [90, 80]);
        assert_eq!(roots.joined(7, vec![9, 5, 4, 3, 2, 1], true), [9, 5, 4, 3, 2, 1]);
        assert_eq!(roots.joined(7, vec![90, 80], false), [90, 80, CUT, 5, 4, 3, 2, 1]);
        assert_eq!(roots.joined(8, vec![90, 80], false), [90, 80]);
        assert_eq!(roots.joined(7, vec![6, 1], true), [6, 1]);
        assert_eq!(roots.joined(7, vec![90], false), [90, CUT, 6, 1]);
        assert_eq!(roots.joined(7, vec![], false), []);
    }
}
