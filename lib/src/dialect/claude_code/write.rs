//! How Claude Code's lines are written: one for each block of an answer, one for each result.
//!
//! What becomes of each body, and what is lost: docs/dialects/claude-code.md.

mod block;
mod compaction;
mod message;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::NO_MODEL;
use super::body::SNAPSHOT_MESSAGE;
use super::folder_name;
use crate::dialect::file_backups;
use crate::dialect::line_builder::{self, Chain, Fields, Hung, fields};
use crate::dialect::writer::{Adoption, Beginning, NewRecord, Shape, WriteUnit, Writer, Written, is_uuid};
use crate::model::loss::{Losses, Lost};
use crate::model::record::{Body, Content, Kind, RecordId, Rewind, Snapshot, Title, TitleSource};
use crate::model::time;
use message::state;

pub(super) static WRITING: Writer = Writer {
    unit: WriteUnit::Block,
    shape: Shape::Tree,
    tells_session: |_| true,
    takes_any_id: false,
    is_with_somebody: false,
    place,
    header: |_| Vec::new(),
    lines,
    sidecar: None,
    adopt: Some(adopt),
    ended_path: None,
};

/// The agent lists prompts; no more of one is kept for that.
const LAST_PROMPT_CHARS: usize = 200;

/// The agent looks for sessions in the folder of its working directory alone, and only for UUIDs.
fn place(beginning: &Beginning<'_>) -> Result<PathBuf, String> {
    let session = beginning.session.as_str();
    if !is_uuid(session) {
        return Err("Claude Code opens only sessions whose id is a UUID".to_owned());
    }
    let folder = folder_name(&beginning.cwd.to_string_lossy());
    Ok(Path::new("projects").join(folder).join(format!("{session}.jsonl")))
}

fn lines(draft: &NewRecord<'_>) -> Written {
    let mut chain = Chain::default();
    let mut record = Record { draft, answers: 0, chain: &mut chain };
    match draft.body {
        Body::User(content) => record.prompt(content, Voice::Person),
        Body::Assistant(content) | Body::System(content) if content.error.is_some() => record.failure(content),
        Body::Assistant(content) => record.answer(content),
        Body::ToolResult(content) => record.prompt(content, Voice::Person),
        Body::Attachment(content) if content.to_model => record.prompt(content, Voice::Agent),
        Body::Attachment(content) => record.context(content),
        Body::System(content) if content.to_model => {
            record.chain.losses.renamed(Lost::Instruction);
            record.prompt(content, Voice::Agent);
        }
        Body::System(content) => record.notice(content),
        Body::Snapshot(snapshot) => record.snapshot(snapshot),
        Body::Title(title) => record.title(title),
        Body::Compaction(compaction) => record.compaction(compaction),
        Body::Rewind(rewind) => record.rewind(rewind),
        Body::Restore(_) | Body::Header(_) | Body::Other(_) => record.losses().dropped(draft.body.kind()),
    }
    record.lead();
    chain.finish(draft, hang)
}

/// In whose name something is said to the model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    Person,
    Agent,
}

/// A record on its way into lines.
struct Record<'d, 'c> {
    draft: &'d NewRecord<'d>,
    /// The answers of the model so far: each needs a name of its own.
    answers: usize,
    chain: &'c mut Chain,
}

impl Record<'_, '_> {
    fn losses(&mut self) -> &mut Losses {
        &mut self.chain.losses
    }

    fn notice(&mut self, content: &Content) {
        self.losses().of_said(content);
        self.losses().of_sender(content, &mut []);
        let state = state(content, self.losses());
        let words = line_builder::words(&content.parts, self.losses());
        if words.is_empty() {
            return self.only_state(content, state);
        }
        let line =
            json!({"type": "system", "subtype": "informational", "content": words, "isMeta": false, "level": "info"});
        let mut line = fields(line);
        line.extend(state);
        self.chain.own(line);
    }

    /// States that are not the agent's own would break its undo.
    fn snapshot(&mut self, snapshot: &Snapshot) {
        match self.snapshot_line(snapshot) {
            Some(line) => self.chain.aside(line),
            None => self.losses().dropped(Kind::Snapshot),
        }
    }

    fn snapshot_line(&self, snapshot: &Snapshot) -> Option<Fields> {
        let Snapshot { message: Some(message), update, files, more, extra } = snapshot else { return None };
        if let (Some(of), [file]) = (extra.get(SNAPSHOT_MESSAGE), &files[..]) {
            let backup = file_backups::write(file)?;
            let line = json!({"type": "file-history-delta", "messageId": message, SNAPSHOT_MESSAGE: of,
                "trackingPath": file.path, "backup": backup});
            return Some(fields(line));
        }
        if !more.is_empty() || (files.is_empty() && !extra.contains_key("messageId")) {
            return None;
        }
        let states = fields(json!({"messageId": message, "timestamp": time::millis(self.draft.at)}));
        let states = file_backups::write_all(files, states.into_iter().chain(extra.clone()).collect())?;
        let line = json!({"type": "file-history-snapshot", "messageId": message, "snapshot": states,
            "isSnapshotUpdate": update});
        Some(fields(line))
    }

    fn title(&mut self, title: &Title) {
        let session = self.draft.session;
        let line = match title.source {
            TitleSource::Manual => json!({"type": "custom-title", "customTitle": title.text, "sessionId": session}),
            TitleSource::Automatic => json!({"type": "ai-title", "aiTitle": title.text, "sessionId": session}),
            TitleSource::Summary => match self.draft.parent {
                Some(leaf) => json!({"type": "summary", "summary": title.text, "leafUuid": leaf}),
                None => json!({"type": "summary", "summary": title.text}),
            },
            // They say nothing that the session does not say itself.
            TitleSource::Prompt | TitleSource::Id => return self.losses().dropped(Kind::Title),
        };
        self.chain.aside(fields(line));
    }

    /// The agent names the record to go on from.
    fn rewind(&mut self, rewind: &Rewind) {
        self.losses().dropped_if(rewind.reason.is_some(), Lost::RewindReason);
        match self.draft.parent {
            Some(leaf) => {
                let mut line = self.leads_to(leaf);
                line.extend(fields(json!({"explicit": true, "rewound": true})));
                self.chain.aside(line);
            }
            None => self.losses().dropped(Kind::Rewind),
        }
    }

    /// A record that begins a branch is not the head by itself where an earlier line named another one.
    fn lead(&mut self) {
        let is_link = self.chain.has_links();
        if is_link && self.draft.branches && !self.draft.sidechain {
            let line = self.leads_to(self.draft.id);
            self.chain.aside(line);
        }
    }

    fn leads_to(&self, leaf: &RecordId) -> Fields {
        let mut line = fields(json!({"type": "last-prompt"}));
        if let Body::User(content) = self.draft.body {
            let words = line_builder::words(&content.parts, &mut Losses::default());
            let words: String = words.chars().take(LAST_PROMPT_CHARS).collect();
            line.insert("lastPrompt".to_owned(), words.into());
        }
        line.extend(fields(json!({"leafUuid": leaf, "sessionId": self.draft.session})));
        line
    }
}

/// The fields that every line of the chain has, around what it says.
fn hang(hung: &Hung<'_>, content: Fields) -> Value {
    let Hung { draft, id, parent } = hung;
    let mut line = Fields::new();
    // A compaction begins a tree of its own and names what it sums up.
    let is_boundary = content.contains_key("compactMetadata");
    line.insert("parentUuid".to_owned(), if is_boundary { Value::Null } else { json!(parent) });
    if is_boundary {
        line.extend(parent.map(|parent| ("logicalParentUuid".to_owned(), json!(parent))));
    }
    line.insert("isSidechain".to_owned(), draft.sidechain.into());
    line.extend(content);
    line.insert("uuid".to_owned(), json!(id));
    line.insert("timestamp".to_owned(), time::millis(draft.at).into());
    let user_type = hung.told(|context| context.user_type.as_ref()).unwrap_or("external");
    line.insert("userType".to_owned(), user_type.into());
    line.extend(line_builder::texts([
        ("cwd", hung.told(|context| context.cwd.as_ref())),
        ("sessionId", Some(draft.session.as_str())),
        ("version", Some(draft.version)),
        ("gitBranch", hung.told(|context| context.git_branch.as_ref())),
    ]));
    line.into()
}

fn adopt(mut line: Value, adoption: &Adoption<'_>) -> Value {
    let Value::Object(fields) = &mut line else { return line };
    if let Some(session) = fields.get_mut("sessionId") {
        *session = json!(adoption.session);
    }
    let begins_tree = fields.get("subtype").is_some_and(|subtype| subtype == "compact_boundary");
    line_builder::take_over(fields, if begins_tree { "logicalParentUuid" } else { "parentUuid" }, adoption);
    line
}
