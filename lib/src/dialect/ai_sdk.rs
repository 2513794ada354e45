//! The AI SDK's UIMessages: a list, an object with `messages`, or one a line; and rows of Smithers' `agents` table.
//!
//! No program has a folder for such files: people name them by their path, or put them into ours. What each major version
//! writes: docs/dialects/ai-sdk.md.

mod body;
mod legacy;
mod line;
mod row;
mod write;

use std::borrow::Cow;
use std::path::Path;

use serde_json::value::RawValue;

use super::{Dialect, Event, Key, Link, Moment, RepeatedId, SessionFacts, Traits};
use crate::dialect::layout::{Format, Layout};
use crate::dialect::writer::Writer;
use crate::model::home::Home;
use crate::model::issue::quoted;
use crate::model::json;
use crate::model::message::{Sdk, takes};
use crate::model::record::{Body, Kind, TitleSource};
use line::{Document, Line};

/// Files of UIMessages.
pub struct AiSdk;

impl Dialect for AiSdk {
    fn name(&self) -> &'static str {
        "ai-sdk"
    }

    fn layouts(&self, home: &Home) -> Vec<Layout> {
        layouts(&home.data().join("chats"), false)
    }

    /// A store has such a folder, or is one itself.
    fn layouts_in(&self, store: &Path) -> Vec<Layout> {
        [layouts(&store.join("chats"), false), layouts(store, true)].concat()
    }

    fn traits(&self) -> Traits {
        Traits { has_ids_in_names: false, ..Traits::new(RepeatedId::LastWins) }
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        if text.starts_with('[') {
            link_all(json::from_str(text)?, emit);
            return Ok(());
        }
        let document: Document<'a> = json::from_str(text)?;
        match document.messages().filter(|_| !document.is_row()) {
            Some(messages) => {
                emit(Event::Facts(SessionFacts { session: document.id.some(), ..SessionFacts::default() }));
                if let Some(text) = document.title.some() {
                    emit(Event::Title { text, source: TitleSource::Automatic });
                }
                link_all(messages, emit);
            }
            None if document.is_row() => row::link(text, &json::from_str(text)?, emit),
            None => link_message(text, json::from_str(text)?, emit),
        }
        Ok(())
    }

    fn recognizes(&self, text: &str) -> bool {
        json::from_str(text).is_ok_and(|document: Document<'_>| document.is_recognized())
            || json::from_str(text).is_ok_and(|line: Line<'_>| line.is_recognized())
    }

    fn body(&self, text: &str) -> Body {
        body::parse(text)
    }

    fn writer(&self) -> Option<&'static Writer> {
        Some(&write::WRITER)
    }
}

fn layouts(root: &Path, mixed: bool) -> Vec<Layout> {
    static FORMATS: [Format; 3] = [Format::Lines, Format::Document, Format::Rows(&row::AGENTS)];
    let format = Format::ByContent { formats: &FORMATS, mixed };
    let named = |pattern| Layout { root: root.to_path_buf(), pattern, companions: &[], sidecar: None, format };
    ["*.json", "*.jsonl", "*.db"].map(named).into()
}

fn link_all<'a>(messages: Vec<&'a RawValue>, emit: &mut dyn FnMut(Event<'a>)) {
    if messages.is_empty() {
        emit(Event::Rejected("a list without messages: every SDK rejects it".to_owned()));
    }
    for (at, message) in messages.into_iter().enumerate() {
        let text = message.get();
        match json::from_str::<Line<'a>>(text) {
            Ok(line) if text.starts_with('{') => link_message(text, line, emit),
            _ => emit(Event::Rejected(format!("element {at} of the list is not a message: {}", quoted(text)))),
        }
    }
}

fn link_message<'a>(text: &'a str, line: Line<'a>, emit: &mut dyn FnMut(Event<'a>)) {
    let role = line.role.0.clone();
    let kind = match role.as_deref() {
        Some("user") => Kind::User,
        Some("assistant") if line.is_compaction() => Kind::Compaction,
        Some("assistant") => Kind::Assistant,
        Some("system") => Kind::System,
        // SDK 3 and 4: data of the application; no model sees it.
        Some("data") => Kind::System,
        // SDK 3: the result of a call.
        Some("tool" | "function") => Kind::ToolResult,
        _ => Kind::Other,
    };
    let about = line.metadata.0.as_ref();
    let id = line.id.clone().some();
    let lacks_id = id.is_none() && line.is_legacy();
    let is_note = role.as_deref() == Some("data");
    emit(Event::Record(Link { id, at: line.at(), is_side: kind == Kind::Other, ..Link::new(text, kind) }));
    emit(Event::WholeMessage);
    match (kind, role) {
        (Kind::Other, Some(role)) => emit(Event::UnknownKind(Cow::Owned(format!("role {role}")))),
        (Kind::Other, None) => emit(Event::MissingField("role")),
        _ if lacks_id => emit(Event::MissingField("id")),
        _ => {}
    }
    if kind == Kind::Other {
        return;
    }
    if is_note {
        emit(Event::UnknownKind(Cow::Borrowed("role data, which SDK 5 dropped")));
    }
    emit(Event::Validate(rejected));
    if let Some(call) = line.answered().filter(|_| kind == Kind::ToolResult) {
        return emit(Event::Key(Key::Result(call)));
    }
    if let Some(usage) = about.and_then(|about| about.usage()) {
        let model = about.and_then(|about| about.model.clone().some());
        emit(Event::Usage { request: None, usage, model, cost: None });
    }
    emit(Event::Facts(SessionFacts {
        cwd: about.and_then(|about| about.cwd.clone().some()),
        git_branch: about.and_then(|about| about.git_branch.clone().some()),
        model: about.and_then(|about| about.model.clone().some()),
        ..SessionFacts::default()
    }));
    line.open_calls().for_each(|call| emit(Event::Key(Key::Call(call))));
}

/// Why all major versions reject a message, according to the newest. SDK 3 and 4 check only the types of parts.
fn rejected(text: &str) -> Option<String> {
    let line: Line<'_> = json::from_str(text).ok()?;
    if line.is_legacy() {
        let unknown = legacy::unknown_part(&line)?;
        return Some(format!("no part of SDK 4 has the type {}; it is kept unchanged", quoted(&unknown)));
    }
    let message = body::value(text);
    let reason = takes(&message, Sdk::V7).err()?;
    let rejected_by_all = [Sdk::V6, Sdk::V5].into_iter().all(|sdk| takes(&message, sdk).is_err());
    rejected_by_all.then(|| format!("the SDK rejects this message: {reason}; it is kept unchanged"))
}

/// A moment that may be a number: seconds, if it is too small for milliseconds of this century.
fn moment(moment: &Moment<'_>) -> Moment<'static> {
    const SECONDS_BELOW: i64 = 100_000_000_000;
    match moment {
        Moment::Absent => Moment::Absent,
        // A text column has a number as its digits.
        Moment::Text(text) if text.parse::<i64>().is_ok() => {
            self::moment(&Moment::Millis(text.parse().unwrap_or_default()))
        }
        Moment::Text(text) => Moment::Text(Cow::Owned(text.to_string())),
        Moment::Millis(number) if (1..SECONDS_BELOW).contains(number) => Moment::Millis(number * 1000),
        Moment::Millis(number) => Moment::Millis(*number),
    }
}
