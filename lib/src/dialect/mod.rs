//! What each agent writes: where its sessions are stored and what its records mean.
//!
//! | name | agent | root of a store | branches | an answer is written |
//! | --- | --- | --- | --- | --- |
//! | `native` | scrollback, Sage Agent | `$XDG_DATA_HOME/scrollback`, `~/.sage` | yes | piece by piece |
//! | `claude-code` | Claude Code | `~/.claude` | yes | part by part |
//! | `codex` | Codex | `~/.codex` | no | part by part |
//! | `qwen-code` | Qwen Code | `~/.qwen` | yes | part by part |
//! | `fluux` | Fluux Agent | `data/memory` of the agent | no | turn by turn |
//! | `sage-el` | sage for Emacs | `~/.emacs.d/sage` | no | turn by turn |
//! | `ai-sdk` | AI SDK | the folder with `chats/` | no | turn by turn |
//!
//! A dialect states facts. It opens no file, walks no folder, keeps no state and prints nothing: the reader
//! ([`crate::session`]) does that once for all dialects.

mod event;
pub(crate) mod layout;
pub(crate) mod profile;
pub(crate) mod writer;
pub(crate) mod file_backups;
pub(crate) mod line_builder;
pub(crate) mod local;
mod printed;
pub(crate) mod record_class;
pub(crate) mod resolved_turn;
mod resume;

mod ai_sdk;
pub(crate) mod claude_code;
mod codex;
mod fluux;
mod native;
mod qwen_code;
mod sage_el;
mod unknown;
pub(crate) mod unsupported;

use std::path::{Path, PathBuf};

pub use ai_sdk::AiSdk;
pub use claude_code::{ClaudeCode, blocks as anthropic_blocks, documented_folder_name, folder_name};
pub use codex::{Codex, RolloutFileName};
pub use event::{Event, Key, Link, Moment, Parent, SessionFacts};
pub use fluux::{Fluux, bare_jid, room as fluux_room};
pub use layout::{Format, Layout, RecordRows, Rows};
pub use native::Native;
pub use qwen_code::QwenCode;
pub use resume::ResumeCommand;
pub use sage_el::{SageEl, aligned_sage_folder_name, faults as sage_el_faults, sage_folder_name};
pub use unknown::Unknown;
pub use writer::{
    Adoption, Beginning, End, Fragment, Line, Names, NewRecord, Response, Shape, Tally, WriteUnit, Writer, Written,
};

use serde_json::{Map, Value};

use crate::model::home::Home;
use crate::model::record::{Body, ToolResult};

/// One agent's format of session files.
///
/// CONTRIBUTING.md describes in five steps how to add one.
pub trait Dialect: Sync {
    /// The name that people type, such as `native`.
    fn name(&self) -> &'static str;

    /// Where the agent stores sessions in a home.
    fn layouts(&self, home: &Home) -> Vec<Layout>;

    /// Where the agent stores sessions below a given folder (`--store DIR`).
    fn layouts_in(&self, store: &Path) -> Vec<Layout>;

    /// The variable that names the agent's folder, if it is not in the home directory.
    fn store_variable(&self) -> Option<&'static str> {
        None
    }

    /// What its files have in common.
    fn traits(&self) -> Traits;

    /// Emits what the tree needs to know of one JSON value; the body stays unparsed.
    ///
    /// The whole `text` is parsed before the first event. An error means that its fields are not those of this dialect:
    /// the reader keeps the value and reports it.
    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error>;

    /// The body of a record; called only for records that are shown or converted.
    fn body(&self, text: &str) -> Body;

    /// How its files are written, if we can write them.
    ///
    /// What is written must be read back by `link` and `body` as the same record, and by the agent itself as its own:
    /// every required field is there, optional ones only with a value, unknown fields of a copied line stay. What the
    /// format cannot store is a [`crate::model::loss::Loss`], never dropped silently.
    fn writer(&self) -> Option<&'static Writer> {
        None
    }

    /// How the agent itself continues a session, if it can be told to from the command line.
    fn resume_command(&self) -> Option<ResumeCommand> {
        None
    }

    /// Emits the facts in the file beside a log, as [`Event::Facts`] and [`Event::Title`].
    fn sidecar<'a>(&self, _text: &'a str, _emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        Ok(())
    }

    /// Whether only this dialect writes such a value. Used to identify a file by its content.
    fn recognizes(&self, _text: &str) -> bool {
        false
    }

    /// Whether a file of nothing but such values is this dialect's, although others may write one occasionally.
    fn resembles(&self, _text: &str) -> bool {
        false
    }

    /// Whether the agent itself opens a file that a layout finds as a session, judging by its name.
    fn is_session_file(&self, _path: &Path) -> bool {
        true
    }

    /// The session id in the name of a session's file, if the name has one.
    fn session_id_from_path(&self, _path: &Path) -> Option<String> {
        None
    }

    /// The person or room that the session is with, if the path of its file names them. See [`Event::Peer`].
    fn peer_from_path(&self, _path: &Path) -> Option<String> {
        None
    }

    /// The name of the part of a session that a file holds, if the session began in another file.
    fn segment_from_path(&self, _path: &Path) -> Option<String> {
        None
    }

    /// The file with titles of all sessions below `root`, the folder of a layout, if the agent keeps one.
    fn title_index(&self, _root: &Path) -> Option<PathBuf> {
        None
    }

    /// The title in a line of that file.
    fn title_from_index(&self, _line: &str) -> Option<IndexTitle> {
        None
    }

    /// The folder of a session's file backups, if the agent keeps them in one; `log` is the session's file in `store`.
    fn file_history(&self, _store: &Path, _log: &Path) -> Option<PathBuf> {
        None
    }

    /// What the agent noted of a change of a file, in the line of the tool's result, in its own fields: the file before, and the
    /// difference. They are no part of the result, because they can be as large as the file.
    fn file_note(&self, _text: &str) -> Option<Map<String, Value>> {
        None
    }

    /// How a tool call ended, in a line that tells it to people only. See [`Key::LateResult`].
    fn late_result(&self, _text: &str) -> Option<ToolResult> {
        None
    }

    /// Whether a line says that a person typed it, whatever tags are in it.
    fn is_typed(&self, _text: &str) -> bool {
        false
    }

    /// Whether record `id` is `mark` or comes after it, judging by their ids. See [`Event::ForkBase`].
    fn is_at_or_after(&self, id: &str, mark: &str) -> bool {
        id == mark
    }

    /// The id of the record so many records before this one, if ids are numbers and no session begins there.
    fn id_before(&self, _id: &str, _records: u64) -> Option<String> {
        None
    }

    /// What the agent sends of a record to the model as `Content` objects of the Gemini API, if it records those.
    ///
    /// One without a `role` continues the content before it. `None`: the agent uses another API.
    fn gemini_contents(&self, _text: &str) -> Option<Vec<serde_json::Value>> {
        None
    }
}

/// A title in an agent's list of titles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexTitle {
    /// The session's id.
    pub session: String,
    /// The title, which a person typed.
    pub text: String,
    /// When it was given.
    pub at: Option<jiff::Timestamp>,
}

/// Facts about all files of a dialect.
#[derive(Debug, Clone, Copy)]
pub struct Traits {
    /// What a repeated id means.
    pub repeated_id: RepeatedId,
    /// The agent itself appends an orphan to the record before it if it is at most so many milliseconds later.
    pub bridged_gap_ms: Option<i64>,
    /// A text that is in every line with a title that somebody gave, if the agent writes such lines anywhere in the file.
    pub title_mark: Option<&'static str>,
    /// In which order the agent sends the results of one answer's calls.
    pub result_order: ResultOrder,
    /// The name of a file is the id of its session: files with other names need not be opened in search of an id.
    pub has_ids_in_names: bool,
    /// A file may hold summaries of other sessions in its folder, which are their titles.
    pub has_foreign_summaries: bool,
    /// The agent only ever appends to the files of a session, or replaces them whole: a second name of a file keeps what it was.
    pub appends_only: bool,
    /// Snapshots name files relative to the root of the project, and not to the working directory.
    pub snapshots_from_root: bool,
    /// A fork has no copy of what it begins with: it names the session that has it.
    pub forks_by_reference: bool,
    /// A fork can begin with copies that do not say where they are from.
    pub copies_unmarked: bool,
    /// The agent's own "last session" passes over those in which nobody has said anything.
    pub passes_over_empty: bool,
    /// A record tells only of the calls that it makes or answers, and each of them has a key.
    pub tells_of_keyed_calls_only: bool,
}

impl Traits {
    /// What most dialects have in common.
    pub const fn new(repeated_id: RepeatedId) -> Traits {
        Traits {
            repeated_id,
            bridged_gap_ms: None,
            title_mark: None,
            result_order: ResultOrder::AsCalled,
            has_ids_in_names: true,
            has_foreign_summaries: false,
            appends_only: false,
            snapshots_from_root: false,
            forks_by_reference: false,
            copies_unmarked: false,
            passes_over_empty: false,
            tells_of_keyed_calls_only: false,
        }
    }
}

/// What a second record with the same id means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepeatedId {
    /// A further fragment of the first.
    Join,
    /// The new state of the first.
    LastWins,
    /// Another record; it gets an id of its own.
    Distinct,
}

/// In which order results are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultOrder {
    /// In the order of the calls.
    AsCalled,
    /// In the order of the results; missing ones come last.
    AsReceived,
    /// Those of the first record, then the missing ones, then the rest in the order of the calls.
    FirstRecordThenMissing,
}

/// Every dialect, in the order in which they are tried.
pub fn all() -> &'static [&'static dyn Dialect] {
    &[&Native, &ClaudeCode, &Codex, &QwenCode, &Fluux, &SageEl, &AiSdk]
}

/// The short names that people type.
const SHORT_NAMES: [(&str, &str); 2] = [("claude", "claude-code"), ("qwen", "qwen-code")];

/// The dialect with this name, or with this short name (`claude`, `qwen`); the names are in the table above.
pub fn named(name: &str) -> Option<&'static dyn Dialect> {
    let name = SHORT_NAMES.iter().find(|(short, _)| *short == name).map_or(name, |(_, name)| *name);
    all().iter().copied().chain([&Unknown as &dyn Dialect]).find(|dialect| dialect.name() == name)
}
