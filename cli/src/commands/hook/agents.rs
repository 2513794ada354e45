//! The agents that can call a hook, and how their settings say so.

use std::path::PathBuf;

use clap::ValueEnum;
use scrollback::dialect::{self, Dialect};
use serde_json::{Value, json};
use toml_edit::{Array, Document};

use super::json_text::{Item, JsonText, Span};
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

/// The key of the settings of Claude Code and Qwen Code that switches all hooks off.
const SWITCHED_OFF: &str = "disableAllHooks";

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

    /// Its settings with the hook, called by this program; or why they cannot have it. `None` if they have it.
    pub(super) fn with_hook(self, settings: &str, program: &str) -> Result<Option<String>, String> {
        let after = match self {
            Agent::ClaudeCode | Agent::QwenCode => self.json_with_hook(settings, program)?,
            Agent::Codex => codex_with_hook(settings, program)?,
        };
        Ok(Some(after).filter(|after| after != settings))
    }

    /// Its settings without the hook; or why they cannot be changed. `None` if they do not have it.
    pub(super) fn without_hook(self, settings: &str, program: &str) -> Result<Option<String>, String> {
        let after = match self {
            Agent::ClaudeCode | Agent::QwenCode => self.json_without_hook(settings, program)?,
            Agent::Codex => codex_without_hook(settings, program)?,
        };
        Ok(Some(after).filter(|after| after != settings))
    }

    /// The program that is called by its settings; `None` if no hook is installed.
    pub(super) fn called(self, settings: &str, program: &str) -> Result<Option<String>, String> {
        match self {
            Agent::ClaudeCode | Agent::QwenCode => {
                let settings = json(settings)?;
                let mut ours = Vec::new();
                for event in EVENTS {
                    ours.extend(self.ours(&settings, event, program)?);
                }
                let command = ours.first().and_then(|ours| settings.string(&ours.command));
                Ok(command.and_then(|command| Some(unquoted(self.program_of(&command)?))))
            }
            Agent::Codex => {
                let document = toml(settings)?;
                let notify = document.get(NOTIFY).filter(|notify| is_ours(notify, program));
                Ok(notify.and_then(|notify| Some(notify.as_array()?.get(0)?.as_str()?.to_owned())))
            }
        }
    }

    /// Why its settings call no hook at all, whichever are in them.
    pub(super) fn switched_off(self, settings: &str) -> Option<&'static str> {
        let settings = json(settings).ok().filter(|_| self != Agent::Codex)?;
        let is_off =
            settings.field(&settings.root(), SWITCHED_OFF).is_some_and(|value| settings.text(&value) == "true");
        is_off.then_some(SWITCHED_OFF)
    }

    fn json_with_hook(self, settings: &str, program: &str) -> Result<String, String> {
        let mut text = json(settings)?;
        let command = format!("{} hook {}", quoted(program), self.name());
        let call = json!({"hooks": [{"type": "command", "command": command}]});
        for event in EVENTS {
            // An older place of this program is no second hook.
            while let Some(old) = self.ours(&text, event, program)?.get(1) {
                self.remove(&mut text, event, old);
            }
            let root = text.root();
            let hooks = text.field(&root, "hooks");
            let calls = hooks.as_ref().and_then(|hooks| text.field(hooks, event));
            match (self.ours(&text, event, program)?.first(), hooks, calls) {
                (Some(ours), _, _) if text.string(&ours.command).as_ref() == Some(&command) => {}
                (Some(ours), _, _) => text.replace(&ours.command, &command.clone().into()),
                (None, Some(_), Some(calls)) => {
                    let items = text.elements(&calls).unwrap_or_default();
                    text.push(&calls, &items, None, &call);
                }
                (None, Some(hooks), None) => {
                    let items = text.fields(&hooks).unwrap_or_default();
                    text.push(&hooks, &items, Some(event), &json!([call]));
                }
                (None, None, _) => {
                    let items = text.fields(&root).unwrap_or_default();
                    text.push(&root, &items, Some("hooks"), &json!({event: [call]}));
                }
            }
        }
        checked(text)
    }

    fn json_without_hook(self, settings: &str, program: &str) -> Result<String, String> {
        let mut text = json(settings)?;
        for event in EVENTS {
            while let Some(ours) = self.ours(&text, event, program)?.first() {
                self.remove(&mut text, event, ours);
            }
        }
        if text.0.len() == settings.len() { Ok(settings.to_owned()) } else { checked(text) }
    }

    /// Removes a hook, and what holds nothing else.
    fn remove(self, text: &mut JsonText, event: &str, ours: &Ours) {
        let root = text.root();
        let Some(of_root) = text.fields(&root) else { return };
        let last = |items: &[Item], key: &str| items.iter().rposition(|item| item.key == key);
        let Some(hooks_at) = last(&of_root, "hooks") else { return };
        let hooks = of_root[hooks_at].value.clone();
        let Some(of_hooks) = text.fields(&hooks) else { return };
        let Some(event_at) = last(&of_hooks, event) else { return };
        let calls = of_hooks[event_at].value.clone();
        let Some(of_calls) = text.elements(&calls) else { return };
        let Some(of_group) = text.elements(&ours.group) else { return };
        if of_group.len() > 1 {
            text.remove(&ours.group, &of_group, ours.at);
        } else if of_calls.len() > 1 {
            text.remove(&calls, &of_calls, ours.call);
        } else if of_hooks.len() > 1 {
            text.remove(&hooks, &of_hooks, event_at);
        } else {
            text.remove(&root, &of_root, hooks_at);
        }
    }

    /// Where this hook is called after an event. The program may have had another place when it was installed.
    fn ours(self, text: &JsonText, event: &str, program: &str) -> Result<Vec<Ours>, String> {
        let Some(hooks) = text.field(&text.root(), "hooks") else { return Ok(Vec::new()) };
        text.fields(&hooks).ok_or("its \"hooks\" are no object")?;
        let Some(calls) = text.field(&hooks, event) else { return Ok(Vec::new()) };
        let calls = text.elements(&calls).ok_or_else(|| format!("its hooks for {event} are no list"))?;
        let mut ours = Vec::new();
        for (call, item) in calls.iter().enumerate() {
            let Some(group) = text.field(&item.value, "hooks") else { continue };
            for (at, hook) in text.elements(&group).unwrap_or_default().iter().enumerate() {
                let Some(command) = text.field(&hook.value, "command") else { continue };
                let written = text.string(&command).unwrap_or_default();
                let called = self.program_of(&written);
                if called.is_some_and(|called| called.contains("scrollback") || called == quoted(program)) {
                    ours.push(Ours { call, group: group.clone(), at, command });
                }
            }
        }
        Ok(ours)
    }

    /// The program of a command that calls this hook, as a shell takes it.
    fn program_of(self, command: &str) -> Option<&str> {
        command.strip_suffix(self.name())?.strip_suffix(" hook ")
    }
}

/// Where this hook is in the settings: the number of the entry, its list of hooks, the number in that, and the command.
struct Ours {
    call: usize,
    group: Span,
    at: usize,
    command: Span,
}

fn json(settings: &str) -> Result<JsonText, String> {
    // A file that is not there has no settings.
    let text = JsonText(if settings.trim().is_empty() { "{}\n".to_owned() } else { settings.to_owned() });
    match serde_json::from_str(&text.0) {
        Ok(Value::Object(_)) => Ok(text),
        Ok(_) => Err("it is no JSON object".to_owned()),
        Err(error) => Err(format!("it is not JSON: {error}")),
    }
}

/// Settings that are still JSON after a change.
fn checked(text: JsonText) -> Result<String, String> {
    json(&text.0)
        .map(|text| text.0)
        .map_err(|_| "it is written in a way that is not understood".to_owned())
}

/// A path as a shell takes it.
fn quoted(program: &str) -> String {
    crate::session::resume::quote(program)
}

fn unquoted(program: &str) -> String {
    let inner = program.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    inner.map_or_else(|| program.to_owned(), |inner| inner.replace(r"'\''", "'"))
}

fn codex_with_hook(settings: &str, program: &str) -> Result<String, String> {
    let document = toml(settings)?;
    let call: Array = [program, "hook", "codex"].into_iter().collect();
    match document.get(NOTIFY) {
        Some(notify) if is_ours(notify, program) => {
            let is_same = notify.as_array().and_then(|words| words.get(0)?.as_str()) == Some(program);
            let span = notify.span().filter(|_| !is_same);
            Ok(span.map_or_else(
                || settings.to_owned(),
                |Span { start, end }| format!("{}{call}{}", &settings[..start], &settings[end..]),
            ))
        }
        Some(_) => Err("it calls another program after each turn (`notify`), and can call only one".to_owned()),
        None => {
            // A key after a table would belong to that table.
            let line_end = if settings.contains("\r\n") { "\r\n" } else { "\n" };
            let between = if settings.is_empty() { "" } else { line_end };
            let (mark, rest) =
                settings.split_at(if settings.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 });
            Ok(format!("{mark}{NOTIFY} = {call}{line_end}{between}{rest}"))
        }
    }
}

fn codex_without_hook(settings: &str, program: &str) -> Result<String, String> {
    let document = toml(settings)?;
    let ours = document.as_table().get_key_value(NOTIFY).filter(|(_, notify)| is_ours(notify, program));
    let Some((start, end)) = ours.and_then(|(key, notify)| Some((key.span()?.start, notify.span()?.end))) else {
        return Ok(settings.to_owned());
    };
    let (before, after) = (&settings[..start], &settings[end..]);
    let next_line = |text: &'_ str| text.find('\n').map_or(text.len(), |end| end + 1);
    let mut after = &after[next_line(after)..];
    // The empty line below a hook that is the first line.
    if before.trim_start_matches('\u{feff}').is_empty() {
        after = after.strip_prefix("\r\n").or(after.strip_prefix('\n')).unwrap_or(after);
    }
    Ok(format!("{before}{after}"))
}

fn toml(settings: &str) -> Result<Document<&str>, String> {
    Document::parse(settings)
        .map_err(|error| format!("it is not TOML: {}", error.message().lines().next().unwrap_or_default()))
}

fn is_ours(notify: &toml_edit::Item, program: &str) -> bool {
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
            (Agent::ClaudeCode, r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]}}"#),
            (Agent::ClaudeCode, r#"{"a":1,"a":2,"hooks":{"Start":[]},"hooks":{"Start": []}}"#),
            (Agent::ClaudeCode, "{\r\n  \"model\": \"opus\",\r\n  \"hooks\": {\"Start\": []}\r\n}\r\n"),
            (Agent::Codex, ""),
            (Agent::Codex, "model = \"gpt-5.5\"\r\n\r\n[tui]\r\ntheme = \"dark\""),
            (Agent::Codex, "# mine\nmodel = \"gpt-5.5\"\n\n[tui]\ntheme = \"dark\"\n"),
        ] {
            let program = "/opt/my tools/agents-log";
            let with = agent.with_hook(settings, program).unwrap().unwrap();
            assert_eq!(agent.called(&with, program).unwrap().as_deref(), Some(program), "{with}");
            assert_eq!(agent.called(settings, program).unwrap(), None, "{settings}");
            assert_eq!(agent.with_hook(&with, program).unwrap(), None, "once is enough: {with}");
            let without = agent.without_hook(&with, program).unwrap().unwrap();
            assert_eq!(with.contains('\r'), settings.contains('\r'), "{with:?}");
            assert!(
                !with.replace("\r\n", "").contains(['\r'])
                    && (!with.contains('\r') || !with.replace("\r\n", "").contains('\n')),
                "{with:?}"
            );
            assert!(with.contains(if settings.contains("1.0e5") { "1.0e5" } else { "" }), "{with}");
            let same = |text: &str| if text.trim() == "{}" { String::new() } else { text.to_owned() };
            assert_eq!(same(&without), settings, "{agent:?}");
        }
    }

    #[test]
    fn what_is_not_a_hook_stays_as_it_is_written() {
        let ours = r#"{"Stop": [{"hooks": [{"type": "command", "command": "scrollback hook claude-code"}]}]}"#;
        for (settings, expected) in [
            (format!(r#"{{"hooks": {ours}, "limit": 1.0e5}}"#), r#"{"limit": 1.0e5}"#),
            (format!(r#"{{"limit": 1.0e5 , "hooks" :{ours}, "a": [1,2]}}"#), r#"{"limit": 1.0e5, "a": [1,2]}"#),
            (format!(r#"{{"hooks": {ours}}}"#), "{}"),
        ] {
            assert_eq!(
                Agent::ClaudeCode.without_hook(&settings, "/x").unwrap().as_deref(),
                Some(expected),
                "{settings}"
            );
        }
    }

    #[test]
    fn a_hook_beside_another_one_is_known_and_removed_alone() {
        let with = r#"{"hooks":{"Stop":[{"matcher":"","hooks":[{"type":"command","command":"/old/scrollback hook claude-code"},{"type":"command","command":"mine"}]}]}}"#;
        let agent = Agent::ClaudeCode;
        assert_eq!(agent.called(with, "/new/scrollback").unwrap().as_deref(), Some("/old/scrollback"));
        let installed = agent.with_hook(with, "/new/scrollback").unwrap().unwrap();
        assert_eq!(
            (installed.matches("hook claude-code").count(), installed.contains("/old")),
            (2, false),
            "{installed}"
        );
        let without = agent.without_hook(&installed, "/new/scrollback").unwrap();
        let expected = r#"{"hooks":{"Stop":[{"matcher":"","hooks":[{"type":"command","command":"mine"}]}]}}"#;
        assert_eq!(without.as_deref(), Some(expected));
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
