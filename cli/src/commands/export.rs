//! `export`: sessions as a file for other programs.

mod sqlite;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use scrollback::view::find::SessionName;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};

/// Write sessions into tables of a SQLite database
///
/// Writes a row for each session, message and part. A session that was exported before is brought up to date: storing it again changes
/// nothing. Without a session, --all exports every session. Secrets are masked, unless --no-redact is given.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    /// Session id, unique prefix, @, a path, or - (can be repeated)
    session: Vec<SessionName>,
    /// The format
    #[arg(long, value_name = "FORMAT")]
    to: Format,
    /// The file
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  scrollback export @ --to sqlite -o sessions.db
  scrollback export --all --to sqlite -o sessions.db";

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Tables of a SQLite database: agents, messages, message_parts
    Sqlite,
}

pub(crate) fn run(args: &ExportArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    match (args.to, &args.output) {
        (Format::Sqlite, Some(output)) => sqlite::run(&args.session, output, global, ctx),
        (Format::Sqlite, None) => {
            let failure = Failure::new(FailureKind::Usage, "a database cannot be printed");
            Err(failure.hint("name a file with -o FILE"))
        }
    }
}
