//! The project's own chores: `cargo xtask test | torture | bench | agents | corpus | tidy`.
//!
//! Plain std, so that the first `cargo xtask test` on a fresh machine starts within seconds.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the person who started it")]

mod rooms;
mod shell;
mod test;
mod torture;
mod bench;
mod agents;
mod corpus;
mod tidy;
mod source;

use std::error::Error;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask <COMMAND>

  test                               install what the tests need; check house rules, format, lints and docs; run all tests
  torture [--seed N] [--minutes M]   run the property tests at full size, at most M minutes (default 60)
  bench [--full] [--generator FILE]  measure limits, ourselves and installed peers, as Markdown
  agents [--bless] [FOLDER]          let the real agents go on with sessions that we wrote; with --bless, write the table down;
                                     with --only WORD, the rows with that word
  corpus [--bless]                   read every corpus case; with --bless, rewrite what is expected of it
  tidy                               check the house rules only";

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["test"] => test::run(),
        ["torture", options @ ..] => torture::run(options),
        ["bench", options @ ..] => bench::run(options),
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
