//! `cargo xtask torture [--seed N] [--minutes M]`: the property tests at full size, optimised, from one printed seed.
//!
//! `SCROLLBACK_TORTURE` contains the seed, and tells the tests to run their full number of cases. Each test program gets an
//! equal share of the remaining time; one that runs out of time is stopped and named, which is not a failure.

use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::Outcome;
use crate::shell::{command, duration, root, shown};

const DEFAULT_MINUTES: u64 = 60;
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long to read the output of a program that has ended: its children may keep it open forever.
const LAST_OUTPUT: Duration = Duration::from_secs(1);
/// For properties without their own count.
const CASES: &str = "100000";
const BUILD: &str = "cargo test --workspace --exclude xtask --lib --bins --tests --locked --profile torture --no-run \
                     --message-format json-render-diagnostics";

#[derive(Debug, PartialEq)]
struct Options {
    seed: u64,
    minutes: u64,
}

/// A test program and the folder of its package.
#[derive(Debug, PartialEq)]
struct Program {
    path: PathBuf,
    package: PathBuf,
}

#[derive(Debug, PartialEq)]
enum End {
    Passed,
    Failed,
    /// Stopped before anything failed.
    OutOfTime,
}

pub(crate) fn run(options: &[&str]) -> Outcome {
    let Options { seed, minutes } = parse(options)?;
    let repeat = format!("cargo xtask torture --seed {seed} --minutes {minutes}");
    println!("xtask: torture: seed {seed}, at most {minutes} minutes after the build; to repeat: {repeat}");

    let programs = build()?;
    let start = Instant::now();
    let end = start + Duration::from_secs(minutes.saturating_mul(60));
    for (index, program) in programs.iter().enumerate() {
        let programs_left = u32::try_from(programs.len() - index)?;
        let share = end.saturating_duration_since(Instant::now()) / programs_left;
        let name = program.path.strip_prefix(root()).unwrap_or(&program.path).display();
        println!("xtask: torture: {name}, at most {}", duration(share));
        match run_for(&mut prepare(program, seed), share)? {
            End::Passed => {}
            End::Failed => return Err(format!("`{name}` failed; to repeat: {repeat}").into()),
            End::OutOfTime => println!("xtask: torture: {name} stopped: out of time, nothing failed"),
        }
    }
    println!("xtask: torture: passed in {}, seed {seed}", duration(start.elapsed()));
    Ok(())
}

fn parse(options: &[&str]) -> Result<Options, String> {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| u64::from(time.subsec_nanos()));
    let mut parsed = Options { seed: clock, minutes: DEFAULT_MINUTES };
    for option in options.chunks(2) {
        let [name, value] = option else {
            return Err(format!("`{}` needs a number", option.concat()));
        };
        let number = value.parse().map_err(|_| format!("{name}: `{value}` is not a number"))?;
        match *name {
            "--seed" => parsed.seed = number,
            "--minutes" => parsed.minutes = number,
            _ => return Err(format!("unknown option `{name}`; use --seed N and --minutes M")),
        }
    }
    Ok(parsed)
}

/// Builds all tests and returns their programs.
///
/// They are started without cargo: stopping cargo would not stop the test that it started.
fn build() -> Result<Vec<Program>, Box<dyn std::error::Error>> {
    let mut build = command(BUILD);
    let output = build.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("`{}` failed: {}", shown(&build), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?.lines().filter_map(test_program).collect())
}

/// The test program in one line of cargo's JSON messages.
fn test_program(message: &str) -> Option<Program> {
    let profile = message.split_once("\"profile\":{")?.1.split_once('}')?.0;
    if !profile.contains("\"test\":true") {
        return None;
    }
    let manifest = PathBuf::from(string_field(message, "manifest_path")?);
    Some(Program { path: string_field(message, "executable")?.into(), package: manifest.parent()?.to_owned() })
}

/// A string field of compact JSON. The only escape in a path is the backslash of Windows.
fn string_field(json: &str, name: &str) -> Option<String> {
    let (_, rest) = json.split_once(&format!("\"{name}\":\""))?;
    Some(rest.split_once('"')?.0.replace(r"\\", r"\"))
}

fn prepare(program: &Program, seed: u64) -> Command {
    let mut command = Command::new(&program.path);
    // Without --nocapture, a failure is explained only at the end of the program, which may be stopped before.
    command
        .arg("--nocapture")
        .current_dir(&program.package)
        .env("CARGO_MANIFEST_DIR", &program.package)
        .env("SCROLLBACK_TORTURE", seed.to_string())
        .env("PROPTEST_RNG_SEED", seed.to_string())
        .env("PROPTEST_CASES", CASES);
    command
}

fn run_for(command: &mut Command, limit: Duration) -> io::Result<End> {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let (failure, failures) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        thread::spawn(|| echo(output, failure));
    }
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            break None;
        }
        thread::sleep(POLL_INTERVAL);
    };
    // A failed test does not end its program: a stopped one may have failed.
    let saw_failure = failures.recv_timeout(LAST_OUTPUT).is_ok();
    Ok(match status {
        Some(status) if status.success() => End::Passed,
        None if !saw_failure => End::OutOfTime,
        Some(_) | None => End::Failed,
    })
}

/// Prints the output of a test program and signals each failure in it.
fn echo(output: impl Read, failure: mpsc::Sender<()>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        println!("{line}");
        if line.ends_with("FAILED") && failure.send(()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_in_any_order() {
        assert_eq!(parse(&["--minutes", "5", "--seed", "7"]), Ok(Options { seed: 7, minutes: 5 }));
        assert_eq!(parse(&["--seed", "7"]), Ok(Options { seed: 7, minutes: DEFAULT_MINUTES }));
    }

    #[test]
    fn a_bad_option_is_named() {
        assert_eq!(parse(&["--seed"]).unwrap_err(), "`--seed` needs a number");
        assert_eq!(parse(&["--seed", "x"]).unwrap_err(), "--seed: `x` is not a number");
        assert_eq!(parse(&["--hours", "1"]).unwrap_err(), "unknown option `--hours`; use --seed N and --minutes M");
    }

    #[test]
    fn only_test_programs_are_picked() {
        let message = |test: &str| {
            r#"{"reason":"compiler-artifact","manifest_path":"/repo/lib/Cargo.toml","target":{"test":true},
               "profile":{"opt_level":"3","test":TEST},"executable":"/t/deps/a-1","fresh":true}"#
                .replace("TEST", test)
        };
        let program = Program { path: "/t/deps/a-1".into(), package: "/repo/lib".into() };
        assert_eq!(test_program(&message("true")), Some(program));
        assert_eq!(test_program(&message("false")), None);
        assert_eq!(test_program(r#"{"reason":"build-finished","success":true}"#), None);
    }

    #[test]
    #[cfg(unix)]
    fn a_program_is_stopped_when_its_time_is_up() {
        let end = |script: &str, limit| run_for(command("sh -c").arg(script), Duration::from_millis(limit)).unwrap();
        assert_eq!(end("exec sleep 60", 10), End::OutOfTime);
        assert_eq!(end("echo test a ... FAILED; exec sleep 60", 500), End::Failed);
        assert_eq!(end("sleep 60 & exec sleep 60", 10), End::OutOfTime);
        assert_eq!(end("true", 60_000), End::Passed);
        assert_eq!(end("false", 60_000), End::Failed);
    }
}
