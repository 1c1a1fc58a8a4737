//! Options of the black box, marks, and the unit that runs it.

use std::path::{Path, PathBuf};

use mydyno_model::units::parse_size;
use mydyno_run::watch::{self, BlackBoxPlan};

use crate::failure::{Failure, Status};
use crate::private;
use crate::ui::Ui;

/// Options of the black box.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Black box")]
pub struct BlackBoxArgs {
    /// Keep the latest minutes in this folder, in a ring, and the minutes around each spike of the server's latency and each `--mark`.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["record", "replay", "once", "host_only"])]
    pub black_box: Option<PathBuf>,
    /// Minutes that the ring goes back, from 5 to 240.
    #[arg(long, value_name = "N", default_value = "15", requires = "black_box", value_parser = clap::value_parser!(u32).range(5..=240))]
    pub minutes: u32,
    /// Bytes that the folder may take, as in `64M`, at least 8M.
    #[arg(long, value_name = "SIZE", default_value = "64M", requires = "black_box")]
    pub black_box_size: String,
    /// Tell the black box that runs in this folder to keep the minutes around now; `--text` says why.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["record", "replay", "once", "host_only", "black_box"])]
    pub mark: Option<PathBuf>,
    /// Text of a mark.
    #[arg(long, value_name = "TEXT", requires = "mark", default_value = "")]
    pub text: String,
    /// Print a systemd unit that runs the black box with the other options of this command line, and end.
    #[arg(long, requires = "black_box")]
    pub unit: bool,
}

/// The smallest folder: a segment of a minute takes up to about 200 kB.
const SMALLEST: u64 = 8 << 20;

impl BlackBoxArgs {
    /// The plan, where one is asked for.
    ///
    /// # Errors
    /// A size that is none, or too small.
    pub fn plan(&self) -> Result<Option<BlackBoxPlan>, Failure> {
        let Some(folder) = &self.black_box else { return Ok(None) };
        let most_bytes =
            parse_size(&self.black_box_size).map_err(|e| Failure::usage(format!("--black-box-size: {e}")))?;
        if most_bytes < SMALLEST {
            return Err(Failure::usage("--black-box-size: at least 8M"));
        }
        Ok(Some(BlackBoxPlan { folder: folder.clone(), minutes: self.minutes, most_bytes }))
    }
}

/// Marks the present instant.
pub fn mark(folder: &Path, text: &str, ui: &Ui) -> Result<Status, Failure> {
    watch::mark(folder, text).map_err(private::run_failure)?;
    ui.note("Marked: the black box keeps the three minutes before and the minute after it");
    Ok(Status::Fine)
}

/// The unit's text. `argv` holds no secret.
pub fn unit(program: &Path, argv: &[String]) -> String {
    let words = argv.iter().skip(1).filter(|word| *word != "--unit").map(|word| quoted(word));
    let command: Vec<String> = std::iter::once(quoted(&program.display().to_string())).chain(words).collect();
    format!(
        "[Unit]\n\
         Description=mydyno's black box: the latest minutes of the database server\n\
         After=network.target mariadb.service mysql.service\n\
         \n\
         [Service]\n\
         ExecStart={} --quiet\n\
         StandardOutput=null\n\
         SuccessExitStatus=130\n\
         Restart=on-failure\n\
         RestartSec=10\n\
         Nice=5\n\
         IOSchedulingClass=idle\n\
         MemoryMax=512M\n\
         UMask=0077\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        command.join(" ")
    )
}

/// A word of ExecStart (systemd.service(5)): in quotes where it needs them, `%` and `$` doubled.
fn quoted(word: &str) -> String {
    let word = word.replace('%', "%%").replace('$', "$$");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%$+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_runs_the_same_command_without_asking_for_itself() {
        let argv = ["mydyno", "watch", "--black-box", "/var/lib/my box", "--unit", "-h", "db%1"];
        let text = unit(Path::new("/usr/bin/mydyno"), &argv.map(str::to_owned));
        let line = "ExecStart=/usr/bin/mydyno watch --black-box \"/var/lib/my box\" -h db%%1 --quiet\n";
        assert!(text.contains(line), "{text}");
    }
}
