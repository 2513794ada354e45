//! sage for Emacs: one JSONL file per project, `~/.emacs.d/sage/projects/<encoded path>/conversation.jsonl`, and its
//! archives in `history/`. A line is a message; the order of lines is the conversation.
//!
//! The facts, with the versions they were seen in: docs/dialects/sage-el.md.

mod body;
mod folder;
mod line;
mod profile;
mod write;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use folder::{aligned_sage_folder_name, sage_folder_name};
pub use profile::faults;

use serde_json::value::RawValue;

use super::{Dialect, Event, Key, Link, Moment, RepeatedId, SessionFacts, Traits};
use crate::dialect::layout::{Format, Layout};
use crate::dialect::writer::Writer;
use crate::model::home::Home;
use crate::model::record::{Body, Cost, Kind, Usage};
use line::{Line, Sidecar};

/// The dialect of sage for Emacs.
pub struct SageEl;

/// The file of a project's current conversation.
const CURRENT: &str = "conversation.jsonl";

impl Dialect for SageEl {
    fn name(&self) -> &'static str {
        "sage-el"
    }

    fn layouts(&self, home: &Home) -> Vec<Layout> {
        // Emacs's own folder in both places that Emacs knows, then the presets `standalone` and `claude-shared`.
        let emacs = home.var_or("XDG_CONFIG_HOME", ".config").join("emacs/sage");
        let stores = [home.dir.join(".emacs.d/sage"), emacs, home.dir.join(".sage"), home.dir.join(".claude")];
        stores.iter().flat_map(|store| self.layouts_in(store)).collect()
    }

    fn layouts_in(&self, store: &Path) -> Vec<Layout> {
        let layout = |root: PathBuf, pattern, sidecar| Layout {
            root,
            pattern,
            companions: &[],
            sidecar: Some(sidecar),
            format: Format::Lines,
        };
        let projects = store.join("projects");
        vec![
            layout(projects.clone(), "*/conversation.jsonl", "metadata.json"),
            layout(projects, "*/history/*.jsonl", "../metadata.json"),
        ]
    }

    fn traits(&self) -> Traits {
        Traits { has_ids_in_names: false, ..Traits::new(RepeatedId::Distinct) }
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let line: Line<'a> = serde_json::from_str(text)?;
        line.link(text, emit);
        Ok(())
    }

    fn recognizes(&self, text: &str) -> bool {
        serde_json::from_str(text).is_ok_and(|line: Line<'_>| line.recognizes())
    }

    fn resembles(&self, text: &str) -> bool {
        is_current(text)
    }

    fn sidecar<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let about: Sidecar<'a> = serde_json::from_str(text)?;
        emit(Event::Facts(SessionFacts {
            cwd: about.project_dir.some(),
            version: about.tca_version.some(),
            model: about.model.some(),
            ..SessionFacts::default()
        }));
        Ok(())
    }

    fn body(&self, text: &str) -> Body {
        body::of(text)
    }

    fn writer(&self) -> Option<&'static Writer> {
        Some(&write::WRITING)
    }

    /// A project's current conversation is called after its folder, without the dashes that a shell takes for an option.
    fn session_id_from_path(&self, path: &Path) -> Option<String> {
        let folder = path.parent().filter(|_| path.ends_with(CURRENT))?.file_name()?.to_string_lossy();
        Some(folder.trim_start_matches('-').to_owned()).filter(|name| !name.is_empty())
    }
}

fn kind_of(role: &str) -> Option<Kind> {
    match role {
        "user" => Some(Kind::User),
        "assistant" => Some(Kind::Assistant),
        "system" => Some(Kind::System),
        "tool" => Some(Kind::ToolResult),
        _ => None,
    }
}

impl<'a> Line<'a> {
    fn link(self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) {
        let role = self.role.clone().some();
        let kind = role.as_deref().and_then(kind_of);
        emit(Event::Record(Link {
            id: self.uuid.clone().some(),
            at: self.timestamp.only_text(),
            // Whoever speaks has a place in the conversation; what nobody says has none.
            is_side: role.is_none(),
            ..Link::new(text, kind.unwrap_or(Kind::Other))
        }));
        match (role, kind) {
            (None, _) => emit(Event::MissingField("role")),
            (Some(role), None) => emit(Event::UnknownKind(Cow::Owned(format!("role {role}")))),
            (Some(_), Some(kind)) => self.check(kind, emit),
        }
        if let Some(usage) = self.usage() {
            let cost = self.usage.0.as_ref().and_then(|tokens| tokens.estimated_cost_usd.0).map(Cost::from_usd);
            emit(Event::Usage { request: None, usage, model: self.model(), cost });
        }
        self.keys_and_facts(text, kind, emit);
    }

    fn check(&self, kind: Kind, emit: &mut dyn FnMut(Event<'a>)) {
        if self.content.is_none_or(|content| content.get() == "null") && self.tool_calls.0.is_empty() {
            emit(Event::MissingField("content"));
        }
        if kind == Kind::ToolResult && self.tool_call_id.0.as_deref().unwrap_or_default().is_empty() {
            emit(Event::MissingField("tool_call_id"));
        }
    }

    fn keys_and_facts(self, text: &'a str, kind: Option<Kind>, emit: &mut dyn FnMut(Event<'a>)) {
        let model = self.model();
        for (at, call) in self.tool_calls.0.into_iter().enumerate() {
            let answered = call.is_answered();
            match call.id.some() {
                Some(id) => {
                    emit(Event::Key(Key::Call(id.clone())));
                    if answered {
                        emit(Event::Key(Key::Result(id)));
                    }
                }
                // A call that cannot be named is answered here or nowhere.
                None if !answered => emit(Event::Key(Key::Call(line::made_up_call_id(text, at).into()))),
                None => {}
            }
        }
        if let Some(call) = self.tool_call_id.some().filter(|_| kind == Some(Kind::ToolResult)) {
            emit(Event::Key(Key::Result(call)));
        }
        let free = self.metadata.0.unwrap_or_default();
        emit(Event::Facts(SessionFacts {
            session: self.session_id.some().or(self.session_id_of_later.some()),
            cwd: self.cwd.some(),
            git_branch: self.git_branch.some().or(free.git_branch.some()),
            version: self.version.some(),
            model,
            ..SessionFacts::default()
        }));
    }

    /// The model that answered.
    fn model(&self) -> Option<Cow<'a, str>> {
        self.model.clone().some().or_else(|| self.metadata.0.as_ref()?.model.clone().some())
    }

    /// What a request cost. `tokens.estimated` is a guess at a text's length, and no cost.
    fn usage(&self) -> Option<Usage> {
        let tokens = self.usage.0.as_ref()?;
        Usage {
            input: tokens.input_tokens.0.or(tokens.input.0),
            output: tokens.output_tokens.0.or(tokens.output.0),
            cache_read: tokens.cache_read_tokens.0.or(tokens.cache_read_input_tokens.0),
            cache_write: tokens.cache_creation_input_tokens.0,
            reasoning: None,
        }
        .known()
    }

    /// Beside the current schema, marks are the id of a session, a call with its `args`, a token estimate, and ids and times
    /// as Emacs writes them.
    fn recognizes(&self) -> bool {
        let is_message =
            self.role.0.is_some() && self.kind.0.is_none() && self.message.is_none() && self.parts.is_none();
        let session = self.session_id.0.is_some();
        let calls = self.tool_calls.0.iter().any(|call| call.name.0.is_some() && call.args.is_some());
        let estimate = self.tokens.0.as_ref().is_some_and(|tokens| tokens.estimated.0.is_some());
        let id = self.uuid.0.as_deref().is_some_and(is_emacs_id);
        let time = matches!(&self.timestamp, Moment::Text(time) if is_emacs_time(time));
        is_message && (session || calls || estimate || id || time)
    }
}

/// Whether a line is of the current schema: a role, a text and a time, and nothing else. Others write no time there, or more.
fn is_current(text: &str) -> bool {
    let fields = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(text).unwrap_or_default();
    let is_text = |key: &str| fields.get(key).is_some_and(|value| value.get().starts_with('"'));
    fields.len() == 3 && ["role", "content", "timestamp"].into_iter().all(is_text)
}

/// `20260111-170000-0a1b2c3d`.
fn is_emacs_id(id: &str) -> bool {
    let digits = |part: &str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = id.splitn(4, '-').collect();
    matches!(parts[..], [day, time, random] if digits(day, 8) && digits(time, 6)
        && random.len() == 8 && random.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// `2026-01-11T17:00:00-0500`: an offset without its colon.
fn is_emacs_time(time: &str) -> bool {
    let shape: String = time.chars().take(25).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    matches!(shape.as_str(), "0000-00-00T00:00:00-0000" | "0000-00-00T00:00:00+0000")
}
