//! Fluux Agent: one folder per JID, `<memory path>/<jid>/history.jsonl`, and older sessions in `<jid>/sessions/`.
//!
//! A flat log of chat messages: a header, then what people and the agent said; a reaction is a message that only reacts.
//! The facts, with the versions they were seen in: docs/dialects/fluux.md.

mod body;
mod jid;
mod line;
pub mod room;
mod write;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::{Dialect, Event, Link, RepeatedId, Traits};
use crate::dialect::layout::{Format, Layout};
use crate::dialect::writer::Writer;
use crate::model::home::Home;
use crate::model::record::{Body, Kind};
pub use jid::bare_jid;
use line::Line;

/// The newest version of the format that is known.
const VERSION: u64 = 1;

/// The file of the session that is going on, and the folder of those before it.
const HISTORY: &str = "history.jsonl";
const ARCHIVES: &str = "sessions";

/// Fluux Agent's dialect.
pub struct Fluux;

impl Dialect for Fluux {
    fn name(&self) -> &'static str {
        "fluux"
    }

    /// Its configuration names the folder, by default one below where it was started: no place in a home is its own.
    fn layouts(&self, home: &Home) -> Vec<Layout> {
        home.cwd_up_to_git_root().flat_map(|dir| self.layouts_in(&dir.join("data/memory"))).collect()
    }

    fn layouts_in(&self, store: &Path) -> Vec<Layout> {
        let root: PathBuf = store.to_path_buf();
        let layout =
            |pattern| Layout { root: root.clone(), pattern, companions: &[], sidecar: None, format: Format::Lines };
        // `knowledge.jsonl` beside them, profiles and notes are no sessions.
        vec![layout("*/history.jsonl"), layout("*/sessions/*.jsonl")]
    }

    fn traits(&self) -> Traits {
        Traits::new(RepeatedId::Distinct)
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let line: Line<'a> = serde_json::from_str(text)?;
        line.link(text, emit);
        Ok(())
    }

    fn recognizes(&self, text: &str) -> bool {
        let marks = |line: Line<'_>| match line.kind.0.as_deref() {
            Some("session") => line.jid.0.is_some(),
            // Others write `message` too, but not with a plain text in the line itself.
            Some("message") => line.role.0.is_some() && (line.says_text() || line.reaction().is_some()),
            _ => false,
        };
        serde_json::from_str(text).is_ok_and(marks)
    }

    fn body(&self, text: &str) -> Body {
        match serde_json::from_str::<Line<'_>>(text) {
            Ok(line) => line.body(text),
            Err(_) => Body::Other(text.into()),
        }
    }

    fn writer(&self) -> Option<&'static Writer> {
        Some(&write::WRITING)
    }

    /// The JID's folder is the session; an archive's name follows it. All sessions of a JID say the same in their headers.
    fn peer_from_path(&self, path: &Path) -> Option<String> {
        let name = self.session_id_from_path(path)?;
        let jid = name.split(':').next().filter(|jid| jid.contains('@'))?;
        Some(jid.to_owned())
    }

    fn session_id_from_path(&self, path: &Path) -> Option<String> {
        let folder = path.parent()?;
        if path.ends_with(HISTORY) {
            return Some(folder.file_name()?.to_string_lossy().into_owned());
        }
        let jid = folder.parent()?.file_name()?.to_string_lossy();
        // No bare JID holds a colon outside of brackets, so that no two files are called the same.
        folder.ends_with(ARCHIVES).then(|| Some(format!("{jid}:{}", path.file_stem()?.to_string_lossy())))?
    }
}

/// What the `type` of a line says, or the `role` of a message.
enum Type<'a> {
    Header,
    Message(Kind),
    /// No type; what its role says stands in for it.
    Untyped(Kind),
    Unknown(Cow<'a, str>),
}

impl<'a> Line<'a> {
    fn of_type(&self) -> Type<'a> {
        let role = match self.role.0.as_deref() {
            Some("user") => Ok(Kind::User),
            Some("assistant") => Ok(Kind::Assistant),
            Some(role) => Err(Type::Unknown(Cow::Owned(format!("role {role}")))),
            None => Ok(Kind::Other),
        };
        match (self.kind.0.as_deref(), role) {
            (Some("session"), _) => Type::Header,
            (Some("message"), Ok(kind)) => Type::Message(kind),
            (Some("message"), Err(unknown)) | (None, Err(unknown)) => unknown,
            (None, Ok(kind)) => Type::Untyped(kind),
            (Some(name), _) => Type::Unknown(Cow::Owned(name.to_owned())),
        }
    }

    fn is_message(&self) -> bool {
        self.kind.0.as_deref() == Some("message") && self.role.0.is_some()
    }

    fn link(self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) {
        let of_type = self.of_type();
        let kind = match &of_type {
            Type::Header => Kind::Header,
            Type::Message(kind) | Type::Untyped(kind) => *kind,
            Type::Unknown(_) => Kind::Other,
        };
        let at = if kind == Kind::Header { &self.created } else { &self.ts };
        emit(Event::Record(Link {
            id: self.msg_id.clone().some(),
            at: at.only_text(),
            // What somebody says in a role that we do not know is said all the same.
            is_side: kind == Kind::Header || (kind == Kind::Other && !self.is_message()),
            ..Link::new(text, kind)
        }));
        if matches!(kind, Kind::User | Kind::Assistant) && self.only_reacts() {
            emit(Event::Reaction);
        }
        match of_type {
            Type::Header => self.header(emit),
            Type::Unknown(name) => emit(Event::UnknownKind(name)),
            Type::Untyped(_) => emit(Event::MissingField("type")),
            Type::Message(Kind::Other) => emit(Event::MissingField("role")),
            Type::Message(_) if !self.says_text() && !self.says_nothing() => {
                emit(Event::MissingField("text in its content"))
            }
            Type::Message(_) if self.says_nothing() && !self.has_more() => emit(Event::MissingField("content")),
            Type::Message(_) => {}
        }
    }

    fn header(self, emit: &mut dyn FnMut(Event<'a>)) {
        if let Some(version) = self.version.0.filter(|version| *version > VERSION) {
            emit(Event::NewerFormat(version));
        }
        match self.jid.some() {
            Some(jid) => emit(Event::Peer(jid::bare(jid))),
            None => emit(Event::MissingField("jid")),
        }
    }
}
