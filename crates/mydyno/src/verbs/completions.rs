//! `mydyno completions`: scripts with which shells complete commands, options and values.

use crate::completion::{SHELLS, script};
use crate::failure::{Failure, Status};
use crate::ui::Ui;

/// Examples for the verb's help.
const EXAMPLES: &str = "\
Where it goes:
  bash   mydyno completions bash > ~/.local/share/bash-completion/completions/mydyno
  zsh    mydyno completions zsh > DIR/_mydyno, DIR one of $fpath
  fish   mydyno completions fish > ~/.config/fish/completions/mydyno.fish";

/// Options of `mydyno completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell.
    #[arg(value_parser = SHELLS)]
    pub shell: String,
}

/// Prints the shell's script.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let script = script(&args.shell)
        .ok_or_else(|| Failure::usage(format!("there is no script for {}", args.shell)))?;
    ui.out(script.trim_end());
    Ok(Status::Fine)
}
