//! The agents that can call a hook, and how their settings say so.

use std::path::PathBuf;

use clap::ValueEnum;
use scrollback::dialect::{self, Dialect};
use serde::{Deserialize, Serialize};
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toml_edit::{Array, DocumentMut, Item};

use crate::ctx::Ctx;

/// An agent with a hook.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agent {
    ClaudeCode,
    QwenCode,
    Codex,
}

/// The events after which a session has something new.
const EVENTS: [&str; 2] = ["Stop", "SessionEnd"];

/// The key of Codex' settings with the program that it calls after each turn.
const NOTIFY: &str = "notify";

impl Agent {
    pub(super) const ALL: [Agent; 3] = [Agent::ClaudeCode, Agent::QwenCode, Agent::Codex];

    pub(super) fn name(self) -> &'static str {
        match self {
            Agent::ClaudeCode => "claude-code",
            Agent::QwenCode => "qwen-code",
            Agent::Codex => "codex",
        }
    }

    pub(super) fn dialect(self) -> Option<&'static dyn Dialect> {
        dialect::named(self.name())
    }

    /// The file with its settings.
    pub(super) fn settings(self, ctx: &Ctx) -> PathBuf {
        let (variable, folder, file) = match self {
            Agent::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
            Agent::QwenCode => ("QWEN_HOME", ".qwen", "settings.json"),
            Agent::Codex => ("CODEX_HOME", ".codex", "config.toml"),
        };
        let set = ctx.home.vars.get(variable).filter(|value| !value.is_empty());
        let folder = set.map_or_else(|| ctx.home.dir.join(folder), |folder| ctx.home.cwd.join(folder));
        folder.join(file)
    }

    /// Its settings with the hook; or why they cannot have it. `None` if they have it.
    pub(super) fn with_hook(self, settings: &str, program: &str) -> Result<Option<String>, String> {
        match self {
            Agent::ClaudeCode | Agent::QwenCode => self.json_with_hook(settings, program),
            Agent::Codex => codex_with_hook(settings, program),
        }
    }

    /// Its settings without the hook; or why they cannot be changed. `None` if they do not have it.
    pub(super) fn without_hook(self, settings: &str, program: &str) -> Result<Option<String>, String> {
        match self {
            Agent::ClaudeCode | Agent::QwenCode => self.json_without_hook(settings, program),
            Agent::Codex => codex_without_hook(settings, program),
        }
    }

    pub(super) fn has_hook(self, settings: &str, program: &str) -> Result<bool, String> {
        Ok(self.without_hook(settings, program)?.is_some())
    }

    fn json_with_hook(self, settings: &str, program: &str) -> Result<Option<String>, String> {
        let mut root = json_object(settings)?;
        let command = format!("{} hook {}", quoted(program), self.name());
        let hooks = root.entry("hooks").or_insert_with(|| json!({}));
        let hooks = hooks.as_object_mut().ok_or("its \"hooks\" are no object")?;
        let mut is_changed = false;
        for event in EVENTS {
            let calls = hooks.entry(event).or_insert_with(|| json!([]));
            let calls = calls.as_array_mut().ok_or_else(|| format!("its hooks for {event} are no list"))?;
            if calls.iter().any(|call| self.is_ours(call, program)) {
                continue;
            }
            calls.push(json!({"hooks": [{"type": "command", "command": command}]}));
            is_changed = true;
        }
        Ok(is_changed.then(|| rewritten(settings, root)))
    }

    fn json_without_hook(self, settings: &str, program: &str) -> Result<Option<String>, String> {
        let mut root = json_object(settings)?;
        let Some(hooks) = root.get_mut("hooks").and_then(Value::as_object_mut) else { return Ok(None) };
        let mut is_changed = false;
        for event in EVENTS {
            let Some(calls) = hooks.get_mut(event).and_then(Value::as_array_mut) else { continue };
            let before = calls.len();
            calls.retain(|call| !self.is_ours(call, program));
            is_changed |= calls.len() != before;
            if calls.is_empty() && before > 0 {
                hooks.shift_remove(event);
            }
        }
        if hooks.is_empty() && is_changed {
            root.shift_remove("hooks");
        }
        Ok(is_changed.then(|| rewritten(settings, root)))
    }

    /// Whether an entry calls this hook, and nothing else. The program may have had another place when it was installed.
    fn is_ours(self, call: &Value, program: &str) -> bool {
        let commands = call.get("hooks").and_then(Value::as_array).into_iter().flatten();
        let commands: Vec<&str> =
            commands.map(|hook| hook.get("command").and_then(Value::as_str).unwrap_or("")).collect();
        let ending = format!(" hook {}", self.name());
        !commands.is_empty()
            && commands.iter().all(|command| {
                let called = command.strip_suffix(&ending);
                called.is_some_and(|called| called.contains("scrollback") || called == quoted(program))
            })
    }
}

fn json_object(settings: &str) -> Result<Map<String, Value>, String> {
    if settings.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(settings) {
        Ok(Value::Object(root)) => Ok(root),
        Ok(_) => Err("it is no JSON object".to_owned()),
        Err(error) => Err(format!("it is not JSON: {error}")),
    }
}

/// Settings with the hooks of `root`: everything else stays as it is written.
fn rewritten(settings: &str, root: Map<String, Value>) -> String {
    let text = spliced(settings, &root);
    let root = Value::Object(root);
    let is_same = |text: &String| serde_json::from_str::<Value>(text).is_ok_and(|now| now == root);
    text.filter(is_same).unwrap_or_else(|| format!("{root:#}\n"))
}

/// Where the hooks are in the settings.
#[derive(Deserialize)]
struct Hooks<'a> {
    #[serde(borrow)]
    hooks: Option<&'a RawValue>,
}

fn spliced(settings: &str, root: &Map<String, Value>) -> Option<String> {
    let known = serde_json::from_str::<Hooks<'_>>(settings).ok()?.hooks;
    let place = known.map(|hooks| {
        let start = hooks.get().as_ptr() as usize - settings.as_ptr() as usize;
        start..start + hooks.get().len()
    });
    let indent = indent_of(settings);
    match (place, root.get("hooks")) {
        (Some(place), Some(hooks)) => {
            let (before, after) = (settings.get(..place.start)?, settings.get(place.end..)?);
            Some(format!("{before}{}{after}", indented(hooks, indent)?))
        }
        (None, Some(hooks)) => {
            let (before, after) = settings.split_at(settings.rfind('}')?);
            let before = before.trim_end();
            let comma = if before.ends_with('{') { "" } else { "," };
            Some(format!("{before}{comma}\n{indent}\"hooks\": {}\n{after}", indented(hooks, indent)?))
        }
        (Some(place), None) if !root.is_empty() => {
            let (before, after) = (settings.get(..place.start)?, settings.get(place.end..)?);
            let key = before.trim_end().strip_suffix(':')?.trim_end();
            let before = key.strip_suffix("\"hooks\"")?.trim_end();
            Some(match before.strip_suffix(',') {
                Some(before) => format!("{before}{after}"),
                None => format!("{before}{}", after.trim_start().strip_prefix(',')?),
            })
        }
        (_, None) => None,
    }
}

/// What a line of the settings is indented by.
fn indent_of(settings: &str) -> &str {
    let blank = |line: &'_ str| line.len() - line.trim_start().len();
    let mut lines = settings.lines().map(|line| line.get(..blank(line)).unwrap_or_default());
    lines.find(|indent| !indent.is_empty()).unwrap_or("  ")
}

/// A value as a field of the settings.
fn indented(value: &Value, indent: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(indent.as_bytes());
    value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter)).ok()?;
    Some(String::from_utf8(bytes).ok()?.replace('\n', &format!("\n{indent}")))
}

/// A path as a shell takes it.
fn quoted(program: &str) -> String {
    crate::session::resume::quote(program)
}

fn codex_with_hook(settings: &str, program: &str) -> Result<Option<String>, String> {
    let mut document = toml(settings)?;
    match document.get(NOTIFY) {
        Some(notify) if is_ours(notify, program) => return Ok(None),
        Some(_) => return Err("it calls another program after each turn (`notify`), and can call only one".to_owned()),
        None => {}
    }
    let call: Array = [program, "hook", "codex"].into_iter().collect();
    // A key after a table would belong to that table.
    let mut with = DocumentMut::new();
    with[NOTIFY] = toml_edit::value(call);
    let rest = document.to_string();
    document.clear();
    Ok(Some(format!("{with}{}{rest}", if rest.is_empty() { "" } else { "\n" })))
}

fn codex_without_hook(settings: &str, program: &str) -> Result<Option<String>, String> {
    let mut document = toml(settings)?;
    if !document.get(NOTIFY).is_some_and(|notify| is_ours(notify, program)) {
        return Ok(None);
    }
    document.remove(NOTIFY);
    Ok(Some(document.to_string().trim_start_matches('\n').to_owned()))
}

fn toml(settings: &str) -> Result<DocumentMut, String> {
    settings.parse().map_err(|error: toml_edit::TomlError| {
        format!("it is not TOML: {}", error.message().lines().next().unwrap_or_default())
    })
}

fn is_ours(notify: &Item, program: &str) -> bool {
    let words: Vec<&str> = notify.as_array().into_iter().flatten().filter_map(|word| word.as_str()).collect();
    matches!(words.as_slice(), [called, "hook", "codex"] if called.contains("scrollback") || *called == program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_added_once_and_removed_without_a_trace() {
        for (agent, settings) in [
            (Agent::ClaudeCode, ""),
            (Agent::ClaudeCode, "{\n  \"model\": \"opus\"\n}\n"),
            (
                Agent::QwenCode,
                "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"command\": \"say done\",\n            \"type\": \"command\"\n          }\n        ]\n      }\n    ]\n  }\n}\n",
            ),
            (Agent::ClaudeCode, "{\n\t\"limit\": 1.0e5,\n\t\"list\": [1,2]\n}"),
            (Agent::Codex, ""),
            (Agent::Codex, "# mine\nmodel = \"gpt-5.5\"\n\n[tui]\ntheme = \"dark\"\n"),
        ] {
            let program = "/opt/my tools/agents-log";
            let with = agent.with_hook(settings, program).unwrap().unwrap();
            assert!(agent.has_hook(&with, program).unwrap() && !agent.has_hook(settings, program).unwrap(), "{with}");
            assert_eq!(agent.with_hook(&with, program).unwrap(), None, "once is enough: {with}");
            let without = agent.without_hook(&with, program).unwrap().unwrap();
            assert!(with.contains(if settings.contains("1.0e5") { "1.0e5" } else { "" }), "{with}");
            let same = |text: &str| if text.trim() == "{}" { String::new() } else { text.to_owned() };
            assert_eq!(same(&without), settings, "{agent:?}");
        }
    }

    #[test]
    fn what_is_not_a_hook_stays_as_it_is_written() {
        let ours = r#"{"Stop": [{"hooks": [{"type": "command", "command": "scrollback hook claude-code"}]}]}"#;
        for (settings, expected) in [
            (format!(r#"{{"hooks": {ours}, "limit": 1.0e5}}"#), r#"{ "limit": 1.0e5}"#),
            (format!(r#"{{"limit": 1.0e5 , "hooks" :{ours}, "a": [1,2]}}"#), r#"{"limit": 1.0e5 , "a": [1,2]}"#),
            (format!(r#"{{"hooks": {ours}}}"#), "{}\n"),
        ] {
            assert_eq!(
                Agent::ClaudeCode.without_hook(&settings, "/x").unwrap().as_deref(),
                Some(expected),
                "{settings}"
            );
        }
    }

    #[test]
    fn settings_that_are_not_understood_stay_as_they_are() {
        for (agent, settings) in [
            (Agent::ClaudeCode, "// my settings\n{}"),
            (Agent::ClaudeCode, "[]"),
            (Agent::ClaudeCode, "{\"hooks\": 3}"),
            (Agent::QwenCode, "{\"hooks\": {\"Stop\": {}}}"),
            (Agent::Codex, "notify = [\"say\", \"done\"]"),
            (Agent::Codex, "= 3"),
        ] {
            assert!(agent.with_hook(settings, "scrollback").is_err(), "{settings}");
        }
    }
}
