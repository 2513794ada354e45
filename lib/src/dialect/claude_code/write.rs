//! Writes Claude Code's lines: one for each block of an answer, one for each result.
//!
//! What each body becomes, and what is lost: docs/dialects/claude-code.md.

mod block;
mod compaction;
mod message;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::body::SNAPSHOT_MESSAGE;
use super::folder_name;
use crate::dialect::file_backups;
use crate::dialect::line_builder::{self, Chain, Fields, Put, fields};
use crate::dialect::writer::{Adoption, Beginning, NewRecord, Shape, WriteUnit, Writer, Written, is_uuid};
use crate::model::loss::{Losses, Lost};
use crate::model::record::{Body, Kind, RecordId, Rewind, Snapshot, Title, TitleSource};
use crate::model::time;

pub(super) static WRITER: Writer = Writer {
    continues_before_compaction: false,
    has_user_type: true,
    stores_display: true,
    adopt: Some(adopt),
    ..Writer::new(WriteUnit::Block, Shape::Tree, place, lines)
};

/// The agent lists prompts, cut to this length.
const LAST_PROMPT_CHARS: usize = 200;

/// The agent looks for sessions only in the folder of its working directory, and only for UUIDs.
fn place(beginning: &Beginning<'_>) -> Result<PathBuf, String> {
    let session = beginning.session.as_str();
    if !is_uuid(session) {
        return Err("Claude Code opens only sessions whose id is a UUID".to_owned());
    }
    let folder = folder_name(&beginning.cwd.to_string_lossy());
    Ok(Path::new("projects").join(folder).join(format!("{session}.jsonl")))
}

fn lines(draft: &NewRecord<'_>) -> Written {
    let mut record = Record { draft, answers: 0, chain: Chain::default() };
    match draft.body {
        Body::System(content) if content.display.is_some() && content.to_model => record.prompt(content, Author::Local),
        Body::Assistant(content) | Body::System(content) if content.error.is_some() => record.failure(content),
        Body::User(content) | Body::ToolResult(content) => record.prompt(content, Author::Person),
        Body::Assistant(content) => record.answer(content),
        Body::Attachment(content) if content.to_model => record.prompt(content, Author::Agent),
        Body::Attachment(content) => record.context(content),
        Body::System(content) if content.to_model => {
            record.losses().renamed(Lost::Instruction);
            record.prompt(content, Author::Agent);
        }
        Body::System(content) => record.notice(content),
        Body::Snapshot(snapshot) => record.snapshot(snapshot),
        Body::Title(title) => record.title(title),
        Body::Compaction(compaction) => record.compaction(compaction),
        Body::Rewind(rewind) => record.rewind(rewind),
        Body::Restore(_) | Body::Header(_) | Body::Other(_) => record.losses().dropped(draft.body.kind()),
    }
    // A record that starts a branch must be named as the head, because an earlier line may have named another one.
    if record.chain.has_links() && draft.branches && !draft.sidechain {
        let line = record.last_prompt(draft.id);
        record.chain.side(line.into());
    }
    record.chain.finish(draft, envelope)
}

/// In whose name a message to the model is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    Person,
    /// A person, but not as a prompt: a command and its output, an interruption.
    Local,
    Agent,
}

/// A record while its lines are built.
struct Record<'d> {
    draft: &'d NewRecord<'d>,
    /// The number of answers so far: each needs an id of its own.
    answers: usize,
    chain: Chain,
}

impl Record<'_> {
    fn losses(&mut self) -> &mut Losses {
        &mut self.chain.losses
    }

    /// States that the agent itself did not write would break its undo.
    fn snapshot(&mut self, snapshot: &Snapshot) {
        match self.snapshot_line(snapshot) {
            Some(line) => self.chain.side(line),
            None => self.losses().dropped(Kind::Snapshot),
        }
    }

    fn snapshot_line(&self, snapshot: &Snapshot) -> Option<Value> {
        let Snapshot { message: Some(message), update, files, more, extra } = snapshot else { return None };
        if let (Some(of), [file]) = (extra.get(SNAPSHOT_MESSAGE), &files[..]) {
            let backup = file_backups::write(file)?;
            return Some(json!({"type": "file-history-delta", "messageId": message, SNAPSHOT_MESSAGE: of,
                "trackingPath": file.path, "backup": backup}));
        }
        if !more.is_empty() || (files.is_empty() && !extra.contains_key("messageId")) {
            return None;
        }
        let states = fields(json!({"messageId": message, "timestamp": time::millis(self.draft.at)}));
        let states = file_backups::write_all(files, states.into_iter().chain(extra.clone()).collect())?;
        Some(json!({"type": "file-history-snapshot", "messageId": message, "snapshot": states,
            "isSnapshotUpdate": update}))
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
            // The session itself has the prompt and the id.
            TitleSource::Prompt | TitleSource::Id => return self.losses().dropped(Kind::Title),
        };
        self.chain.side(line);
    }

    /// The agent names the record to continue from.
    fn rewind(&mut self, rewind: &Rewind) {
        self.losses().dropped_if(rewind.reason.is_some(), Lost::RewindReason);
        let Some(leaf) = self.draft.parent else { return self.losses().dropped(Kind::Rewind) };
        let mut line = self.last_prompt(leaf);
        line.extend(fields(json!({"explicit": true, "rewound": true})));
        self.chain.side(line.into());
    }

    /// The line that names the head.
    fn last_prompt(&self, leaf: &RecordId) -> Fields {
        let mut line = fields(json!({"type": "last-prompt"}));
        if let Some(text) = self.draft.prompt {
            line.put("lastPrompt", text.chars().take(LAST_PROMPT_CHARS).collect::<String>());
        }
        line.extend(fields(json!({"leafUuid": leaf, "sessionId": self.draft.session})));
        line
    }
}

/// Adds the fields that every line of the parent chain has.
fn envelope(draft: &NewRecord<'_>, content: Fields) -> Value {
    let mut line = Fields::new();
    // A compaction starts a tree of its own and names the record that it follows.
    let is_boundary = content.contains_key("compactMetadata");
    line.put("parentUuid", if is_boundary { Value::Null } else { json!(draft.parent) });
    line.put_some("logicalParentUuid", draft.parent.filter(|_| is_boundary).map(RecordId::as_str));
    line.put("isSidechain", draft.sidechain);
    line.extend(content);
    line.put("uuid", draft.id.as_str());
    line.put("timestamp", time::millis(draft.at));
    line.put("userType", draft.context_fact(|context| context.user_type.as_ref()).unwrap_or("external"));
    line.put_text("cwd", draft.context_fact(|context| context.cwd.as_ref()));
    line.put_text("sessionId", Some(draft.session.as_str()));
    line.put_text("version", Some(draft.version));
    line.put_text("gitBranch", draft.context_fact(|context| context.git_branch.as_ref()));
    line.into()
}

fn adopt(mut line: Value, adoption: &Adoption<'_>) -> Value {
    let Value::Object(fields) = &mut line else { return line };
    if let Some(session) = fields.get_mut("sessionId") {
        *session = json!(adoption.session);
    }
    // The fork of a sub-agent's session is not a sub-agent's: Claude Code would not send its records.
    if fields.get("isSidechain").is_some_and(|is_sidechain| *is_sidechain == true) {
        fields.put("isSidechain", false);
        fields.shift_remove("agentId");
    }
    let starts_tree = fields.get("subtype").is_some_and(|subtype| subtype == "compact_boundary");
    line_builder::adopt_line(fields, if starts_tree { "logicalParentUuid" } else { "parentUuid" }, adoption);
    line
}
