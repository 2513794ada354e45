//! The project's own commands: `cargo xtask test | torture | bench | homes | agents | corpus | tidy`.
//!
//! One small dependency (JSON), so that the first `cargo xtask test` on a new machine starts within seconds.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command line program")]

mod rooms;
mod shell;
mod test;
mod torture;
mod bench;
mod agents;
mod homes;
mod corpus;
mod tidy;
mod source;

use std::error::Error;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask <COMMAND>

  test                               run every check: house rules, format, lints, docs, all tests
  torture [--seed N] [--minutes M]   run the property tests at full size, at most M minutes (default 60)
  bench [OPTION]                     measure limits, scrollback and installed peers; print Markdown
                                     (--full: a large home; --install: install ccusage first)
  bench redact                       measure redaction: what it finds, false alarms, speed; and other scanners
  homes FOLDER [OPTION]              write a home with sessions and its true totals (--mb N, --sessions N, --seed N)
  agents [OPTION] [FOLDER]           let the real agents continue sessions that scrollback wrote
                                     (--install: install them by npm; --bless: write the table to the page;
                                     --only WORD: only these rows)
  corpus [--bless]                   read every corpus case and compare (--bless: write the pages instead)
  tidy                               check the house rules only";

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["test"] => test::run(),
        ["torture", options @ ..] => torture::run(options),
        ["bench", options @ ..] => bench::run(options),
        ["homes", options @ ..] => homes::run(options),
        ["agents", options @ ..] => agents::run(options),
        ["corpus"] => corpus::check(),
        ["corpus", "--bless"] => corpus::bless(),
        ["tidy"] => tidy::run(),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
