//! Options of verbs that are defined only for the command lines that name the verb: those of all verbs together take most of the time
//! that the program needs to start.

use std::cell::RefCell;
use std::ffi::OsString;
use std::ops::Deref;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

thread_local! {
    /// Words of the command line that is being defined; `None` defines the options of all verbs.
    static WORDS: RefCell<Option<Vec<OsString>>> = const { RefCell::new(None) };
}

/// Calls `define` for a command line of these words: options of verbs that are not among them stay undefined in it.
pub fn only<R>(words: &[OsString], define: impl FnOnce() -> R) -> R {
    WORDS.set(Some(words.to_vec()));
    let defined = define();
    WORDS.set(None);
    defined
}

/// Options of a verb, defined on demand.
#[derive(Debug)]
pub struct OnDemand<T>(Box<T>);

impl<T> Deref for OnDemand<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for OnDemand<T> {
    fn augment_args(verb: Command) -> Command {
        let named = WORDS.with_borrow(|words| {
            words.as_ref().is_none_or(|words| words.iter().any(|word| word == verb.get_name()))
        });
        if named { T::augment_args(verb) } else { verb }
    }

    fn augment_args_for_update(verb: Command) -> Command {
        T::augment_args_for_update(verb)
    }
}

impl<T: FromArgMatches> FromArgMatches for OnDemand<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self(Box::new(T::from_arg_matches(matches)?)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
