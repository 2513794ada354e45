//! Writes Qwen Code's records: one for a message, whose parts may be in lines of their own, one for each result.
//!
//! What each body becomes, and what is lost: docs/dialects/qwen-code.md.

mod compaction;
mod message;
mod part;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::dialect::claude_code::whole_folder_name;
use crate::dialect::file_backups;
use crate::dialect::line_builder::{self, Chain, Fields, Put, fields};
use crate::dialect::writer::{
    Adoption, Beginning, FILE_NAME_LIMIT_BYTES, NewRecord, Shape, WriteUnit, Writer, Written, is_uuid,
};
use crate::model::loss::{Losses, Lost};
use crate::model::record::{Body, Kind, Rewind, Snapshot, Title, TitleSource};
use crate::model::time;

pub(super) static WRITER: Writer =
    Writer { adopt: Some(adopt), stores_display: true, ..Writer::new(WriteUnit::Part, Shape::Tree, place, lines) };

fn place(beginning: &Beginning<'_>) -> Result<PathBuf, String> {
    let session = beginning.session.as_str();
    let digit = |at: usize| session.as_bytes().get(at).copied().unwrap_or_default();
    let is_known = matches!(digit(14), b'1'..=b'5') && matches!(digit(19), b'8' | b'9' | b'a' | b'b' | b'A' | b'B');
    if !is_uuid(session) || !is_known {
        return Err("Qwen Code opens only sessions whose id is a UUID of version 1 to 5".to_owned());
    }
    let folder = whole_folder_name(&beginning.cwd.to_string_lossy());
    // The agent does not shorten it.
    if folder.len() > FILE_NAME_LIMIT_BYTES {
        let why = "bytes; Qwen Code does not record there";
        return Err(format!("the path of the directory is longer than {FILE_NAME_LIMIT_BYTES} {why}"));
    }
    Ok(Path::new("projects").join(folder).join("chats").join(format!("{session}.jsonl")))
}

fn lines(draft: &NewRecord<'_>) -> Written {
    let mut record = Record::default();
    match draft.body {
        Body::User(content) => record.prompt(content, Author::Person),
        Body::System(content) if content.to_model && content.display.is_some() => {
            record.prompt(content, Author::Local);
        }
        Body::Assistant(content) | Body::System(content) if content.error.is_some() => {
            record.failure(content, draft.body);
        }
        Body::Assistant(content) => record.answer(content),
        Body::ToolResult(content) => record.prompt(content, Author::PersonMidTurn),
        Body::Attachment(content) if content.to_model => record.prompt(content, Author::Agent),
        Body::System(content) if content.to_model => {
            record.losses().renamed(Lost::Instruction);
            record.prompt(content, Author::Agent);
        }
        Body::System(content) => record.notice(content),
        Body::Snapshot(snapshot) => record.snapshot(snapshot),
        Body::Title(title) => record.title(title),
        Body::Compaction(compaction) => record.compaction(compaction),
        Body::Rewind(rewind) => record.rewind(rewind),
        Body::Attachment(content) => record.losses().dropped_context(content),
        Body::Restore(_) | Body::Header(_) | Body::Other(_) => {
            record.losses().dropped(draft.body.kind());
        }
    }
    record.chain.finish(draft, envelope)
}

/// In whose name a message to the model is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    Person,
    /// A person, while tools run.
    PersonMidTurn,
    /// A person, but not as a prompt: a command and its output, an interruption.
    Local,
    Agent,
}

/// A record while its lines are built.
#[derive(Default)]
struct Record {
    chain: Chain,
}

impl Record {
    fn losses(&mut self) -> &mut Losses {
        &mut self.chain.losses
    }

    fn system(&mut self, subtype: &str, payload: Value) {
        let line = json!({"type": "system", "subtype": subtype, "provenance": "system", "systemPayload": payload});
        self.chain.own([fields(line)]);
    }

    /// States that the agent itself did not write would break its undo.
    fn snapshot(&mut self, snapshot: &Snapshot) {
        let of_prompt = |one: &Snapshot| {
            let is_own = one.extra.get("promptId").is_some_and(Value::is_string);
            file_backups::write_all(&one.files, one.extra.clone()).filter(|_| is_own)
        };
        let all = std::iter::once(snapshot).chain(&snapshot.more).filter(|one| **one != Snapshot::default());
        let all: Option<Vec<Fields>> = all.map(of_prompt).collect();
        match all {
            Some(all) => self.system("file_history_snapshot", json!({"snapshots": all})),
            None => self.losses().dropped(Kind::Snapshot),
        }
    }

    fn title(&mut self, title: &Title) {
        let source = match title.source {
            TitleSource::Manual => "manual",
            TitleSource::Automatic | TitleSource::Summary => "auto",
            // The session itself has the prompt and the id.
            TitleSource::Prompt | TitleSource::Id => return self.losses().dropped(Kind::Title),
        };
        self.losses().renamed_if(title.source == TitleSource::Summary, Kind::Title);
        self.system("custom_title", json!({"customTitle": title.text, "titleSource": source}));
    }

    fn rewind(&mut self, rewind: &Rewind) {
        self.losses().dropped_if(rewind.reason.is_some(), Lost::RewindReason);
        self.system("rewind", json!({}));
    }
}

/// Adds the fields that every record has, before its content.
fn envelope(draft: &NewRecord<'_>, mut content: Fields) -> Value {
    let mut line = fields(json!({
        "uuid": draft.id,
        "parentUuid": draft.parent,
        "sessionId": draft.session,
        "timestamp": time::millis(draft.at),
    }));
    for key in ["type", "subtype", "provenance"] {
        line.put_some(key, content.shift_remove(key));
    }
    line.put_text("cwd", draft.context_fact(|context| context.cwd.as_ref()));
    line.put_text("version", Some(draft.version));
    line.put_text("gitBranch", draft.context_fact(|context| context.git_branch.as_ref()));
    line.put_some("isSidechain", draft.sidechain.then_some(true));
    // Two fragments of one message may be equal, and equal lines count once.
    let fragment = draft.fragment.filter(|fragment| fragment.seq > 0);
    line.put_some("fragment", fragment.map(|fragment| json!(fragment)));
    line.extend(content);
    line.into()
}

fn adopt(mut line: Value, adoption: &Adoption<'_>) -> Value {
    let Value::Object(fields) = &mut line else { return line };
    fields.put("sessionId", adoption.session.as_str());
    // The fork of a sub-agent's session is not a sub-agent's: `list` would hide it, and `--continue` skip it.
    if let Some(Value::Object(payload)) = fields.get_mut("systemPayload") {
        payload.shift_remove("parentSessionId");
    }
    line_builder::adopt_line(fields, "parentUuid", adoption);
    line
}
