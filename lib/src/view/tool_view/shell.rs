//! Commands: what was run, what it printed and how it ended, without the lines that agents put around it for the model.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::result::{result_text, without_error_tags};
use super::{Changes, Ending, change, ending, noted};
use crate::model::message::{ToolPart, ToolState};

/// One run of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellRun<'a> {
    /// The command as it is typed: of `["bash", "-lc", "ls"]` it is `ls`.
    pub command: Cow<'a, str>,
    /// What it printed.
    pub output: Cow<'a, str>,
    /// The number that it ended with, if the agent recorded one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The files that changed meanwhile, if the agent recorded them.
    #[serde(skip_serializing_if = "Changes::is_empty")]
    pub changes: Changes<'a>,
}

/// The run that a call is; `None` if its input has no command.
pub(super) fn of(call: &ToolPart) -> Option<ShellRun<'_>> {
    let command = command(call.input()?.as_object()?)?;
    let exit_code = |value: &Value| value.as_i64();
    let changes = change::while_running(call);
    // Qwen Code also records the run as it shows it.
    let shown = noted(call, "resultDisplay");
    let text = |key: &str| shown.and_then(|shown| shown.get(key)?.as_str());
    if let Some(output) = text("output") {
        let exit_code = shown.and_then(|shown| shown.get("exitCode")).and_then(exit_code);
        // Where all of a long output is stands in the last line of its text.
        let is_cut = shown.and_then(|shown| shown.get("truncated")?.as_bool()) == Some(true);
        let saved = text("text").filter(|_| is_cut).and_then(|text| text.lines().next_back());
        let saved = saved.filter(|saved| output.lines().next_back() != Some(saved));
        let output = saved.map_or(output.into(), |saved| format!("{output}\n{saved}").into());
        return Some(ShellRun { command, output, exit_code, changes });
    }
    // What a command had printed before a person stopped it is only there.
    if let Some(output) = shown.and_then(on_terminal).filter(|_| ending(call) == Ending::Interrupted) {
        return Some(ShellRun { command, output: output.into(), exit_code: None, changes });
    }
    let has_failed = matches!(call.state, ToolState::OutputError { .. });
    let (stated, output) = match result(call) {
        Cow::Borrowed(text) if has_failed => {
            let text = without_error_tags(text);
            of_failure(text).unwrap_or_else(|| (None, text.into()))
        }
        Cow::Borrowed(text) => unwrap(text).unwrap_or((None, text.into())),
        Cow::Owned(text) => (None, text.into()),
    };
    // The output may be recorded apart from the failure, which has the number.
    let of_error = || match &call.state {
        ToolState::OutputError { error_text, .. } => of_failure(error_text)?.0,
        _ => None,
    };
    let exit_code = noted(call, "exitCode").and_then(exit_code).or(stated).or_else(of_error);
    Some(ShellRun { command, output, exit_code, changes })
}

/// The lines of a terminal, each of pieces in one style; `None` if there is no text in them.
fn on_terminal(shown: &Value) -> Option<String> {
    let lines = shown.get("ansiOutput")?.as_array()?.iter();
    let line = |pieces: &Value| -> String {
        let pieces = pieces.as_array().into_iter().flatten();
        let line: String = pieces.filter_map(|piece| piece.get("text")?.as_str()).collect();
        line.trim_end().to_owned()
    };
    let text = lines.map(line).collect::<Vec<_>>().join("\n");
    Some(text).filter(|text| !text.trim().is_empty())
}

/// The command, or the script that a shell is given.
fn command(input: &Map<String, Value>) -> Option<Cow<'_, str>> {
    if let Some(script) = script(input) {
        return Some(script.into());
    }
    let words = stated(input)?.as_array()?;
    let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
    let words = words.filter(|words| !words.is_empty())?;
    Some(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ").into())
}

/// The command if it is one text: a string, or what `bash -lc` is given.
pub(crate) fn script(input: &Map<String, Value>) -> Option<&str> {
    match stated(input)? {
        Value::String(command) => Some(command),
        Value::Array(words) => match words.as_slice() {
            [Value::String(shell), Value::String(option), Value::String(script)] => {
                let shell = shell.rsplit(['/', '\\']).next().unwrap_or(shell).trim_end_matches(".exe");
                let is_shell = ["sh", "bash", "zsh", "dash", "fish", "powershell", "pwsh", "cmd"].contains(&shell);
                let takes_script = ["-c", "-lc", "-ic", "-Command", "/c"].contains(&option.as_str());
                Some(script.as_str()).filter(|_| is_shell && takes_script)
            }
            _ => None,
        },
        _ => None,
    }
}

fn stated(input: &Map<String, Value>) -> Option<&Value> {
    // Codex's own shell call has its command one level down.
    let inside = input.get("action").and_then(Value::as_object).unwrap_or(input);
    inside.get("command").or_else(|| inside.get("cmd"))
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', "'\\''")).into()
    }
}

/// The text of the result, or of the failure.
fn result(call: &ToolPart) -> Cow<'_, str> {
    match &call.state {
        ToolState::OutputAvailable { output: Some(output), .. } => result_text(output),
        ToolState::OutputError { error_text, .. } => match noted(call, "output") {
            Some(output) => result_text(output),
            None => error_text.into(),
        },
        ToolState::OutputAvailable { output: None, .. }
        | ToolState::InputStreaming { .. }
        | ToolState::InputAvailable { .. }
        | ToolState::ApprovalRequested { .. }
        | ToolState::ApprovalResponded { .. }
        | ToolState::OutputDenied { .. } => Cow::Borrowed(""),
    }
}

/// The exit code and the output in the text that the model is given.
///
/// ```text
/// Chunk ID: 059e2a                  Exit code: 3        Exit code 3       Command: ls
/// Wall time: 0.0000 seconds         Wall time: 0 …      what it printed   Directory: (root)
/// Process exited with code 3        Output:                               Output: what it printed
/// Original token count: 3           what it printed                       Error: (none)
/// Output:                                                                 Exit Code: 3
/// what it printed                                                         Signal: (none)
/// ```
fn unwrap(text: &str) -> Option<Unwrapped<'_>> {
    if text.starts_with("Command: ") { gemini(text) } else { codex(text) }
}

type Unwrapped<'a> = (Option<i64>, Cow<'a, str>);

/// The same for a failure: `Exit code 3` on a line of its own, or `exit code 3: …`, as we write it. Codex may leave out `Output:`.
fn of_failure(text: &str) -> Option<Unwrapped<'_>> {
    let after = |prefixes: [&str; 3]| prefixes.iter().find_map(|prefix| text.strip_prefix(prefix));
    if let Some(rest) = after(["Exit code ", "exit code ", "exit status "]) {
        let end = rest.find([':', '\n']).unwrap_or(rest.len());
        let output = rest[end..].trim_start_matches([':', '\n']).trim_start_matches(' ');
        return Some((Some(rest[..end].parse().ok()?), output.into()));
    }
    unwrap(text).or_else(|| Some((None, text.strip_prefix("Wall time: ")?.split_once('\n')?.1.into())))
}

fn codex(text: &str) -> Option<Unwrapped<'_>> {
    const FACTS: &[&str] =
        &["Chunk ID: ", "Wall time: ", "Exit code: ", "Process ", "Original token count: ", "Total output lines: "];
    let (mut exit_code, mut rest) = (None, text);
    while FACTS.iter().any(|fact| rest.starts_with(fact)) {
        let line;
        (line, rest) = rest.split_once('\n')?;
        let code = line.strip_prefix("Exit code: ").or_else(|| line.strip_prefix("Process exited with code "));
        exit_code = code.and_then(|code| code.parse().ok()).or(exit_code);
    }
    let output = rest.strip_prefix("Output:").filter(|_| rest.len() < text.len())?;
    Some((exit_code, output.strip_prefix('\n').unwrap_or(output).into()))
}

fn gemini(text: &str) -> Option<Unwrapped<'_>> {
    let (_, rest) = text.split_once("\nOutput: ")?;
    let (rest, ending) = rest.rsplit_once("\nExit Code: ")?;
    let (output, error) = rest.rsplit_once("\nError: ").unwrap_or((rest, ""));
    let exit_code = ending.lines().next().and_then(|code| code.parse().ok());
    let is_text = |text: &&str| !matches!(*text, "" | "(none)" | "(empty)");
    let printed: Vec<&str> = [output, error].into_iter().filter(is_text).collect();
    Some((exit_code, printed.join("\n").into()))
}
