//! Our own format: Sage Agent's, versioned, with more kinds. One JSON object a line, a tree by `parentUuid`.
//!
//! docs/format.md shows a line of every kind; docs/dialects/native.md says what differs in files that Sage wrote.

mod body;
mod line;
mod snapshot;
mod write;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::{Dialect, Event, Key, Link, Moment, Parent, RepeatedId, SessionFacts, Traits};
use crate::dialect::layout::{Format, Layout};
use crate::dialect::writer::Writer;
use crate::model::home::Home;
use crate::model::lenient::{self, ObjectOrText};
use crate::model::record::{Body, Cost, Kind, TitleSource, Usage};
use line::{Line, Sidecar};

/// The newest version of the format that this program writes.
const FORMAT: u64 = 2;

/// The native dialect.
pub struct Native;

impl Dialect for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn layouts(&self, home: &Home) -> Vec<Layout> {
        let own = home.data().join("sessions");
        let sage = home.dir.join(".sage/sessions");
        let projects = home.cwd_up_to_git_root().map(|dir| dir.join(".sage/sessions"));
        let mut roots = vec![own, sage];
        for root in projects {
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        roots.into_iter().map(layout).collect()
    }

    fn layouts_in(&self, store: &Path) -> Vec<Layout> {
        vec![layout(store.join("sessions"))]
    }

    fn traits(&self) -> Traits {
        Traits::new(RepeatedId::Join)
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let line: Line<'a> = serde_json::from_str(text)?;
        line.link(text, emit);
        Ok(())
    }

    fn recognizes(&self, text: &str) -> bool {
        let marks = |line: Line<'_>| {
            line.format.0.is_some()
                || line.context.0.is_some()
                || !line.tool_results.0.is_empty()
                || line.spoken().is_some_and(|spoken| !spoken.tool_calls.0.is_empty())
        };
        serde_json::from_str(text).is_ok_and(marks)
    }

    fn session_id_from_path(&self, path: &Path) -> Option<String> {
        let folder = path.parent().filter(|_| path.ends_with("messages.jsonl"))?;
        Some(folder.file_name()?.to_string_lossy().into_owned())
    }

    /// As the seed describes it; Sage itself keeps its copies in the project.
    fn file_history(&self, _store: &Path, log: &Path) -> Option<PathBuf> {
        Some(log.with_file_name("backups"))
    }

    fn sidecar<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let about: Sidecar<'a> = serde_json::from_str(text)?;
        emit(Event::Facts(SessionFacts {
            session: about.id.some(),
            cwd: about.working_directory.some(),
            git_branch: about.git_branch.some(),
            version: about.version.some(),
            model: about.model.some(),
            parent_session: about.parent_session_id.some(),
            ..SessionFacts::default()
        }));
        for (text, source) in [(about.custom_title, TitleSource::Manual), (about.summary, TitleSource::Summary)] {
            if let Some(text) = text.some() {
                emit(Event::Title { text, source });
            }
        }
        Ok(())
    }

    fn writer(&self) -> Option<&'static Writer> {
        Some(&write::WRITING)
    }

    fn body(&self, text: &str) -> Body {
        match serde_json::from_str::<Line<'_>>(text) {
            Ok(line) => line.body(text),
            Err(_) => Body::Other(text.into()),
        }
    }
}

fn layout(root: PathBuf) -> Layout {
    Layout {
        root,
        pattern: "*/messages.jsonl",
        companions: &["snapshots.jsonl"],
        sidecar: Some("metadata.json"),
        format: Format::Lines,
    }
}

/// What the `type` of a line says, or the `role` of a plain message.
enum Type<'a> {
    Known(&'static str, Kind),
    Plain(Kind),
    /// No type; what its message says stands in for it.
    Untyped(Kind),
    Unknown(Cow<'a, str>),
}

const TYPES: &[(&str, Kind)] = &[
    ("user", Kind::User),
    ("assistant", Kind::Assistant),
    ("tool_result", Kind::ToolResult),
    ("attachment", Kind::Attachment),
    ("system", Kind::System),
    ("error", Kind::System),
    ("summary", Kind::Title),
    ("custom_title", Kind::Title),
    ("file_history_snapshot", Kind::Snapshot),
    ("compaction", Kind::Compaction),
    ("rewind", Kind::Rewind),
    ("restore", Kind::Restore),
];

fn kind_of_role(role: Option<&str>) -> Kind {
    match role {
        Some("user") => Kind::User,
        Some("assistant") => Kind::Assistant,
        Some("system" | "error") => Kind::System,
        Some("tool") => Kind::ToolResult,
        _ => Kind::Other,
    }
}

impl<'a> Line<'a> {
    fn kind(&self) -> Type<'a> {
        match (&self.kind.0, &self.role.0) {
            (Some(name), _) => match TYPES.iter().find(|(known, _)| known == name) {
                Some((name, kind)) => Type::Known(name, *kind),
                None => Type::Unknown(name.clone()),
            },
            (None, Some(role)) if self.spoken().is_none() => match kind_of_role(Some(role)) {
                Kind::Other => Type::Unknown(Cow::Owned(format!("role {role}"))),
                kind => Type::Plain(kind),
            },
            _ => Type::Untyped(kind_of_role(self.spoken().and_then(|content| content.role.0.as_deref()))),
        }
    }

    fn link(self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) {
        let of_type = self.kind();
        let (id, parent) = (self.uuid.clone().some(), self.parent_uuid.clone().some());
        let (name, kind, plain) = match &of_type {
            Type::Known(name, kind) => (*name, *kind, false),
            Type::Plain(kind) => ("", *kind, true),
            Type::Untyped(kind) => ("", *kind, false),
            Type::Unknown(_) => ("", Kind::Other, false),
        };
        let side = match kind {
            Kind::Snapshot => true,
            Kind::Title => parent.is_none(),
            Kind::Other => parent.is_none() || id.is_none(),
            _ => false,
        };
        let parent = match parent {
            Some(parent) => Parent::Id(parent),
            // A record that cannot be named is a plain message, or lost its fields: it follows what came before.
            None if id.is_none() && !side => Parent::Previous,
            None => Parent::Root,
        };
        let lacks_id = id.is_none() && !plain && !side;
        emit(Event::Record(Link {
            id,
            parent,
            at: match &self.timestamp {
                // Seconds or milliseconds? The format has neither.
                Moment::Millis(number) => Moment::Text(number.to_string().into()),
                text => text.clone(),
            },
            is_sidechain: self.is_sidechain.0,
            is_side: side,
            is_failure: name == "error",
            is_numbered: self.fragment.0.is_some(),
            ..Link::new(text, kind)
        }));
        match of_type {
            Type::Unknown(name) => emit(Event::UnknownKind(name)),
            Type::Untyped(_) => emit(Event::MissingField("type")),
            Type::Known(..) | Type::Plain(_) if lacks_id => emit(Event::MissingField("uuid")),
            Type::Known(..) | Type::Plain(_) => {}
        }
        if kind == Kind::User && self.only_reacts() {
            emit(Event::Reaction);
        }
        if let Some(format) = self.format.0.filter(|format| *format > FORMAT) {
            emit(Event::NewerFormat(format));
        }
        if let Some(usage) = self.usage() {
            let model = self.model.clone().some().or_else(|| self.spoken()?.model.clone().some());
            let cost = self.usage.0.as_ref().and_then(|tokens| tokens.cost_estimate.0).map(Cost::from_usd);
            emit(Event::Usage { request: None, usage, model, cost });
        }
        if let Some((text, source)) = self.title(name) {
            emit(Event::Title { text, source });
        }
        self.keys_and_facts(emit);
    }

    fn keys_and_facts(self, emit: &mut dyn FnMut(Event<'a>)) {
        let free = self.free();
        let context = self.context.0;
        let (cwd, git_branch) = context.map(|place| (place.cwd.some(), place.git_branch.some())).unwrap_or_default();
        let free = free.map(|free| (free.parent_session_id.some(), free.parent_tool_call_id.some()));
        let (parent_session, parent_call) = free.unwrap_or_default();
        let mut model = self.model.some();
        let (mut calls, mut results) = (Vec::new(), self.tool_results.0);
        if let ObjectOrText::Object(spoken) = self.message {
            model = model.or(spoken.model.some());
            calls = spoken.tool_calls.0;
            results.extend(spoken.tool_results.0);
        }
        for id in calls.into_iter().filter(|call| !call.is_settled()).filter_map(|call| call.id.some()) {
            emit(Event::Key(Key::Call(id)));
        }
        for result in results {
            let key = if result.preliminary.0 { Key::PreliminaryResult } else { Key::Result };
            result.tool_call_id.some().into_iter().for_each(|id| emit(Event::Key(key(id))));
        }
        let (session, version) = (self.session_id.some(), self.version.some());
        let forked_from = self.forked_from.0.and_then(|origin| origin.session_id.some());
        emit(Event::Facts(SessionFacts {
            session,
            cwd,
            git_branch,
            version,
            model,
            parent_session,
            parent_call,
            forked_from,
        }));
    }

    fn title(&self, name: &str) -> Option<(Cow<'a, str>, TitleSource)> {
        let message = || {
            let raw = self.spoken()?.content?;
            Some(Cow::Owned(lenient::text_or_json(raw))).filter(|text: &Cow<'_, str>| !text.is_empty())
        };
        match name {
            "summary" => Some((self.summary.clone().some().or_else(message)?, TitleSource::Summary)),
            "custom_title" => {
                let text = self.title.clone().some().or_else(|| self.custom_title.clone().some()).or_else(message)?;
                let source = match self.title_source.0.as_deref() {
                    Some("automatic" | "auto") => TitleSource::Automatic,
                    _ => TitleSource::Manual,
                };
                Some((text, source))
            }
            _ => None,
        }
    }

    fn usage(&self) -> Option<Usage> {
        let tokens = self.usage.0.as_ref()?;
        Some(Usage {
            input: tokens.input_tokens.0,
            output: tokens.output_tokens.0,
            cache_read: tokens.cache_read_tokens.0,
            cache_write: tokens.cache_write_tokens.0,
            reasoning: tokens.reasoning_tokens.0,
        })
    }
}
