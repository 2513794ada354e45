//! How Qwen Code's records are written: one for a message, whose parts may come in lines of their own, one for each result.
//!
//! What becomes of each body, and what is lost: docs/dialects/qwen-code.md.

mod compaction;
mod message;
mod part;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::dialect::claude_code::whole_folder_name;
use crate::dialect::file_backups;
use crate::dialect::line_builder::{self, Chain, Fields, Hung, fields};
use crate::dialect::writer::{
    Adoption, Beginning, FILE_NAME_LIMIT_BYTES, NewRecord, Shape, WriteUnit, Writer, Written, is_uuid,
};
use crate::model::loss::{Losses, Lost};
use crate::model::record::{Body, Kind, Rewind, Snapshot, Title, TitleSource};
use crate::model::time;

pub(super) static WRITING: Writer = Writer {
    unit: WriteUnit::Part,
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

fn place(beginning: &Beginning<'_>) -> Result<PathBuf, String> {
    let session = beginning.session.as_str();
    let digit = |at: usize| session.as_bytes().get(at).copied().unwrap_or_default();
    let is_known = matches!(digit(14), b'1'..=b'5') && matches!(digit(19), b'8' | b'9' | b'a' | b'b' | b'A' | b'B');
    if !is_uuid(session) || !is_known {
        return Err("Qwen Code opens only sessions whose id is a UUID of version 1 to 5".to_owned());
    }
    let folder = whole_folder_name(&beginning.cwd.to_string_lossy());
    // The agent does not cut it.
    if folder.len() > FILE_NAME_LIMIT_BYTES {
        let why = "bytes: qwen records nothing there";
        return Err(format!("the path of the directory is longer than {FILE_NAME_LIMIT_BYTES} {why}"));
    }
    Ok(Path::new("projects").join(folder).join("chats").join(format!("{session}.jsonl")))
}

fn lines(draft: &NewRecord<'_>) -> Written {
    let mut chain = Chain::default();
    let mut record = Record { chain: &mut chain };
    match draft.body {
        Body::User(content) => record.prompt(content, Voice::Person),
        Body::Assistant(content) | Body::System(content) if content.error.is_some() => {
            record.failure(content, draft.body)
        }
        Body::Assistant(content) => record.answer(content),
        Body::ToolResult(content) => record.prompt(content, Voice::MidTurn),
        Body::Attachment(content) if content.to_model => record.prompt(content, Voice::Agent),
        Body::Attachment(_) => record.losses().dropped(Kind::Attachment),
        Body::System(content) if content.to_model => {
            record.losses().renamed(Lost::Instruction);
            record.prompt(content, Voice::Agent);
        }
        Body::System(content) => record.notice(content),
        Body::Snapshot(snapshot) => record.snapshot(snapshot),
        Body::Title(title) => record.title(title),
        Body::Compaction(compaction) => record.compaction(compaction),
        Body::Rewind(rewind) => record.rewind(rewind),
        Body::Restore(_) | Body::Header(_) | Body::Other(_) => record.losses().dropped(draft.body.kind()),
    }
    chain.finish(draft, hang)
}

/// In whose name something is said to the model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    Person,
    /// A person, while tools ran.
    MidTurn,
    Agent,
}

/// A record on its way into lines.
struct Record<'c> {
    chain: &'c mut Chain,
}

impl Record<'_> {
    fn losses(&mut self) -> &mut Losses {
        &mut self.chain.losses
    }

    fn notices(&mut self, subtype: &str, payload: Value) {
        let line = json!({"type": "system", "subtype": subtype, "provenance": "system", "systemPayload": payload});
        self.chain.own(fields(line));
    }

    /// States that are not the agent's own would break its undo.
    fn snapshot(&mut self, snapshot: &Snapshot) {
        let of_prompt = |one: &Snapshot| {
            let is_own = one.extra.get("promptId").is_some_and(Value::is_string);
            file_backups::write_all(&one.files, one.extra.clone()).filter(|_| is_own)
        };
        let all = std::iter::once(snapshot).chain(&snapshot.more).filter(|one| **one != Snapshot::default());
        let all: Option<Vec<Fields>> = all.map(of_prompt).collect();
        match all {
            Some(all) => self.notices("file_history_snapshot", json!({"snapshots": all})),
            None => self.losses().dropped(Kind::Snapshot),
        }
    }

    fn title(&mut self, title: &Title) {
        let source = match title.source {
            TitleSource::Manual => "manual",
            TitleSource::Automatic => "auto",
            TitleSource::Summary => {
                self.losses().renamed(Kind::Title);
                "auto"
            }
            // They say nothing that the session does not say itself.
            TitleSource::Prompt | TitleSource::Id => return self.losses().dropped(Kind::Title),
        };
        self.notices("custom_title", json!({"customTitle": title.text, "titleSource": source}));
    }

    fn rewind(&mut self, rewind: &Rewind) {
        self.losses().dropped_if(rewind.reason.is_some(), Lost::RewindReason);
        self.notices("rewind", json!({}));
    }
}

/// The fields that every record has, before what it says.
fn hang(hung: &Hung<'_>, mut content: Fields) -> Value {
    let Hung { draft, id, parent } = hung;
    let mut line = fields(json!({
        "uuid": id,
        "parentUuid": parent,
        "sessionId": draft.session,
        "timestamp": time::millis(draft.at),
    }));
    for key in ["type", "subtype", "provenance"] {
        line.extend(content.shift_remove(key).map(|value| (key.to_owned(), value)));
    }
    line.extend(line_builder::texts([
        ("cwd", hung.told(|context| context.cwd.as_ref())),
        ("version", Some(draft.version)),
        ("gitBranch", hung.told(|context| context.git_branch.as_ref())),
    ]));
    if draft.sidechain {
        line.insert("isSidechain".to_owned(), true.into());
    }
    // Two pieces of one message may say the same: a line that stands there twice counts once.
    if let Some(fragment) = draft.fragment.filter(|fragment| fragment.seq > 0) {
        line.insert("fragment".to_owned(), json!(fragment));
    }
    line.extend(content);
    line.into()
}

fn adopt(mut line: Value, adoption: &Adoption<'_>) -> Value {
    let Value::Object(fields) = &mut line else { return line };
    fields.insert("sessionId".to_owned(), json!(adoption.session));
    line_builder::take_over(fields, "parentUuid", adoption);
    line
}
