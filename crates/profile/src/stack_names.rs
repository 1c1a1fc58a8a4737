//! Names of the functions of stacks.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::kernel::KernelSymbols;
use crate::modules::Modules;
use crate::roots::CUT;

/// A stack by its addresses: of the user, then of the kernel, both innermost first.
pub type Addresses = (Vec<u64>, Vec<u64>);

/// Names of functions; those of addresses that were asked for are kept.
#[derive(Debug)]
pub struct StackNames {
    pub modules: Modules,
    pub kernel: KernelSymbols,
    found: HashMap<u64, Arc<str>>,
    /// The names of `found`, each once: a function has many addresses at which it is seen.
    kept: HashSet<Arc<str>>,
}

/// Most names that are kept.
const MOST_NAMES: usize = 200_000;

impl StackNames {
    pub fn new(modules: Modules, kernel: KernelSymbols) -> Self {
        Self { modules, kernel, found: HashMap::new(), kept: HashSet::new() }
    }

    /// Functions of a stack, outermost first.
    pub fn of(&mut self, (user, kernel): &Addresses) -> Vec<Arc<str>> {
        if self.found.len() > MOST_NAMES {
            self.found.clear();
            self.kept.clear();
        }
        let Self { modules, kernel: symbols, found, kept } = self;
        let mut name = |address: u64, name: &dyn Fn(u64) -> String| {
            let name = || {
                let name = name(address);
                if let Some(known) = kept.get(name.as_str()) {
                    return Arc::clone(known);
                }
                let name: Arc<str> = name.into();
                kept.insert(Arc::clone(&name));
                name
            };
            Arc::clone(found.entry(address).or_insert_with(name))
        };
        let of_user = |address| match address {
            CUT => crate::CUT_STACK.to_owned(),
            _ => modules.name(address),
        };
        let of_kernel = |address| symbols.name(address);
        let mut names: Vec<Arc<str>> = user.iter().rev().map(|address| name(*address, &of_user)).collect();
        names.extend(kernel.iter().rev().map(|address| name(*address, &of_kernel)));
        names
    }
}
