//! What is answered: plain structs that the command line, the pages and the API all show. docs/cli-json.md lists them.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::model::issue::Issue;
use crate::model::message::Sdk;
use crate::model::record::{Kind, RecordId, SessionId, TitleSource, Usage};
use crate::session::{HeadKind, State};
use crate::view::conversation::Conversation;
use crate::view::profile::Verdict;

/// A session in a list. What is absent is not known.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// Who wrote it.
    pub dialect: &'static str,
    /// The git work tree it was about, or the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Its first file.
    pub path: String,
    /// What to call it.
    pub title: String,
    /// Where the title comes from.
    pub title_source: TitleSource,
    /// What was asked first, in a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_prompt: Option<String>,
    /// Its first instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// Its newest instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<Timestamp>,
    /// Messages of the default branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_count: Option<usize>,
    /// Records of all branches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_count: Option<usize>,
    /// Bytes of its files.
    pub size_bytes: u64,
    /// How the default branch ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// The last record of the default branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<RecordId>,
    /// How many ends it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_count: Option<usize>,
    /// The models that answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Tokens of its own requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Of those, the ones on the default branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_usage: Option<Usage>,
    /// The git branch, as last told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_branch: Option<String>,
    /// The agent's version, as last told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// The session that this one is a sub-agent's work for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<SessionId>,
    /// The tool call there that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_call: Option<String>,
    /// The session that it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// How many issues there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue_count: Option<u64>,
    /// Summaries that its file holds for other sessions: the record that each ends with, and its text.
    #[serde(skip)]
    pub summaries: Vec<(String, String)>,
}

/// One branch of a session, as messages.
#[derive(Serialize)]
pub struct Shown<'a> {
    /// The session.
    pub session: SessionRow,
    /// False when only a page of it was read.
    pub whole: bool,
    /// The branch.
    pub branch: BranchRow,
    /// Every end.
    pub heads: Vec<HeadRow>,
    /// The branch as messages, read while they are written out.
    pub messages: Messages<'a>,
    /// What is wrong.
    pub issues: &'a [Issue],
}

/// Some messages of a conversation, each read only when it is serialised.
pub struct Messages<'a> {
    /// The conversation.
    pub conversation: &'a Conversation<'a, 'a>,
    /// Which messages.
    pub range: std::ops::Range<usize>,
    /// For which SDK.
    pub sdk: Sdk,
}

impl Serialize for Messages<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::{Error, SerializeSeq};
        let mut seq = serializer.serialize_seq(Some(self.range.len()))?;
        for message in self.conversation.messages(self.range.clone()) {
            seq.serialize_element(&message.map_err(S::Error::custom)?.for_sdk(self.sdk))?;
        }
        seq.end()
    }
}

/// The records of a branch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BranchRow {
    /// Its last record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<RecordId>,
    /// Root to head.
    pub records: Vec<RecordId>,
    /// Missing parents on it.
    pub gaps: Vec<GapRow>,
    /// The records of a cycle that it ran into.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cycle: Vec<RecordId>,
    /// Tokens of the session's own requests on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A missing parent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GapRow {
    /// The record whose parent is missing.
    pub child: RecordId,
    /// The id that nobody wrote.
    pub missing_parent: RecordId,
    /// The record that it was hung on all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridged_to: Option<RecordId>,
}

/// An end of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadRow {
    /// Its last record.
    pub id: RecordId,
    /// How it relates to the newest.
    pub kind: HeadKind,
    /// When its last record was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<Timestamp>,
    /// The last thing said there, in a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Tokens of the session's own requests on the branch that it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Every record of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeView {
    /// The session.
    pub session: SessionRow,
    /// In file order.
    pub records: Vec<TreeRow>,
    /// Every end.
    pub heads: Vec<HeadRow>,
    /// What is wrong.
    pub issues: Vec<Issue>,
}

/// One record in the tree.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeRow {
    /// Its id.
    pub id: RecordId,
    /// The record it hangs on, or would if it were there.
    pub parent: Option<RecordId>,
    /// What it is.
    pub kind: Kind,
    /// Who speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// When it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Its file, when the session has several and it is not the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Its first byte.
    pub offset: u64,
    /// Its bytes.
    pub length: u32,
    /// Part of a side conversation.
    pub sidechain: bool,
    /// On the default branch.
    pub on_branch: bool,
    /// What it says, in a line.
    pub text: String,
    /// The calls it makes.
    pub tool_calls: Vec<CallRow>,
    /// The calls it answers.
    pub tool_results: Vec<ResultRow>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallRow {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub input: Value,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultRow {
    /// The call's id.
    pub call_id: String,
    /// Whether it failed or was refused.
    pub is_error: bool,
}

/// What is wrong with one session's files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Examined {
    /// Its first file.
    pub path: String,
    /// How it was read.
    pub dialect: &'static str,
    /// Lines of the first file.
    pub lines: u64,
    /// Records of all files.
    pub records: usize,
    /// What is wrong.
    pub issues: Vec<Issue>,
    /// The verdict on each line of the first file, where a profile was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdicts: Option<Vec<Verdict>>,
}
