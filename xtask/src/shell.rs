//! Starts other programs in the root of the repository; errors name the command.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::Outcome;

/// Returns the root of the repository.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// Prepares a command that will run in the root of the repository; `line` is split at spaces.
pub(crate) fn command(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let program = match words.next().unwrap_or_default() {
        // The cargo that started this program may not be the first one in PATH.
        "cargo" => std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()),
        program => program.to_owned(),
    };
    let mut command = Command::new(program);
    command.args(words).current_dir(root());
    command
}

/// Runs a command to its end and shows its output.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|error| format!("cannot start `{}`: {error}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` failed: {status}", shown(command)).into()) }
}

/// A command as it would be typed.
pub(crate) fn shown(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}='{}'", name.to_string_lossy(), value?.to_string_lossy())));
    let program = Path::new(command.get_program()).file_stem().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args()).map(|word| word.to_string_lossy().into_owned());
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

/// A duration for people.
pub(crate) fn duration(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let mut command = command("cargo doc --no-deps");
        command.env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(shown(&command), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
    }

    #[test]
    fn a_failure_names_its_command() {
        let error = run(command("git no-such-verb").stderr(Stdio::null())).unwrap_err().to_string();
        assert!(error.starts_with("`git no-such-verb` failed"), "{error}");
        let error = run(&mut command("no-such-program --flag")).unwrap_err().to_string();
        assert!(error.starts_with("cannot start `no-such-program --flag`"), "{error}");
    }
}
