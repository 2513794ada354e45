//! `export`: sessions as a file for other people and programs.

mod document;
mod sqlite;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use scrollback::view::find::SessionName;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};

/// Write a session as one file of HTML or Markdown, or sessions into tables of SQLite
///
/// The HTML file needs no script and no network: it can be sent to a colleague and read in ten years. Sub-agents are folded into the
/// calls that started them. `--to sqlite` writes a row for each session, message and part; a session that was exported before is brought
/// up to date, and without a session, --all exports every one. Secrets are masked, unless --no-redact is given.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    /// Session id, unique prefix, @, a path, or - (can be repeated for sqlite)
    session: Vec<SessionName>,
    /// The format
    #[arg(long, value_name = "FORMAT", default_value = "html")]
    to: Format,
    /// Write to this file instead of standard output; only a database may exist already
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the branch that ends in this record
    #[arg(long, value_name = "RECORD", conflicts_with = "branches")]
    head: Option<String>,
    /// Write every branch, the newest first
    #[arg(long)]
    branches: bool,
}

const EXAMPLES: &str = "\
Examples:
  scrollback export @ -o session.html
  scrollback export 3f8a --to md | less
  scrollback export --all --to sqlite -o sessions.db";

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// A page that is complete by itself
    Html,
    /// Markdown, as for an issue
    Md,
    /// Tables of a SQLite database: agents, messages, message_parts
    Sqlite,
}

pub(crate) fn run(args: &ExportArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let usage = |message: &str, hint: &str| Err(Failure::new(FailureKind::Usage, message).hint(hint));
    match (args.to, &args.output, &args.session[..]) {
        (Format::Sqlite, None, _) => usage("a database cannot be printed", "name a file with -o FILE"),
        (Format::Sqlite, Some(output), _) if output.as_os_str() == "-" => {
            usage("a database cannot be printed", "name a file with -o FILE")
        }
        (Format::Sqlite, Some(_), _) if args.branches || args.head.is_some() => {
            usage("tables have every branch", "leave out --head and --branches")
        }
        (Format::Sqlite, Some(output), sessions) => sqlite::run(sessions, output, global, ctx),
        (_, _, [session]) => document::run(session, args, global, ctx),
        (_, _, []) => usage("no session is named", "name one, such as @ for the newest"),
        (_, _, [_, _, ..]) => usage("a page has one session", "export them one by one, or --to sqlite"),
    }
}
