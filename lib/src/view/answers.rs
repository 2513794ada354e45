//! Answers about a session: plain structs that own their data and can be written as JSON and read back.
//!
//! The command line, the pages and the API all show these. docs/cli-json.md lists their fields.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::issue::Issue;
use crate::model::message::Message;
use crate::model::named_requests::NamedRequests;
use crate::model::record::{Kind, RecordId, SessionId, Speaker, TitleSource, Usage};
use crate::session::{HeadKind, State};
use crate::view::profile::Verdict;

/// A session in a list. What is absent is not known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// The dialect that it is written in.
    pub dialect: String,
    /// The git work tree of its working directory, or that directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Its first file.
    pub path: String,
    /// Its title, or a substitute: the first prompt, or the id.
    pub title: String,
    /// Where the title comes from.
    pub title_source: TitleSource,
    /// The first prompt, in one line.
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
    /// Whether a person stopped the agent before it answered the last prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// The last record of the default branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<RecordId>,
    /// How many heads it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_count: Option<usize>,
    /// The models that answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Tokens of the requests in its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Of `usage`: tokens of requests that another session made, and that this one has as a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_usage: Option<Usage>,
    /// Tokens of its own requests on the default branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_usage: Option<Usage>,
    /// The git branch of the last record that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_branch: Option<String>,
    /// The operating system in the last record that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The kind of user in the last record that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_type: Option<String>,
    /// The agent's version in the last record that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// The session that started this one as a sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<SessionId>,
    /// The tool call there that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_call: Option<String>,
    /// The session that it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// Whether its agent has deleted it, and a copy was kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// How many issues there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue_count: Option<u64>,
    /// Its working directory, as it was recorded; none if a secret in it is masked. Not part of the JSON.
    #[serde(skip)]
    pub cwd: Option<String>,
    /// Summaries of other sessions in its file: the last record of each session, and the text. Not part of the JSON.
    #[serde(skip)]
    pub summaries: Vec<(String, String)>,
    /// Requests that a copy of the session has under the same name: the name's hash, and the tokens. Not part of the JSON.
    #[serde(skip)]
    pub named_requests: NamedRequests,
    /// The session that it begins in was not found: it may be there the next time, and nothing in this one's own files tells. Not
    /// part of the JSON.
    #[serde(skip)]
    pub base_is_missing: bool,
}

/// One branch of a session as messages: all of them, or a page.
///
/// `Messages` is a list, except where a long session is written message by message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionPage<Messages = Vec<Message>> {
    /// The session.
    pub session: SessionRow,
    /// The branch that is checked out now where it began, if it recorded another one last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_branch_now: Option<String>,
    /// False when this is only a part of the branch.
    pub whole: bool,
    /// The branch.
    pub branch: BranchRow,
    /// Every head.
    pub heads: Vec<HeadRow>,
    /// The messages, oldest first.
    pub messages: Messages,
    /// What is wrong in the session's files.
    pub issues: Vec<Issue>,
}

/// The records of a branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BranchRow {
    /// Its last record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<RecordId>,
    /// Root to head.
    pub records: Vec<RecordId>,
    /// Missing parents on it.
    pub gaps: Vec<GapRow>,
    /// The records of the cycle that it ends in, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cycle: Vec<RecordId>,
    /// Tokens of the session's own requests on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A missing parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GapRow {
    /// The record whose parent is missing.
    pub child: RecordId,
    /// The id of the missing parent.
    pub missing_parent: RecordId,
    /// The record that was taken as its parent instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridged_to: Option<RecordId>,
}

/// A head: the end of a branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadRow {
    /// Its last record.
    pub id: RecordId,
    /// How it relates to the newest.
    pub kind: HeadKind,
    /// When its last record was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<Timestamp>,
    /// The last text before it, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Tokens of the session's own requests on its branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Every record of a session.
///
/// `Records` is a list, except where a long session is written record by record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreeView<Records = Vec<TreeRow>> {
    /// The session.
    pub session: SessionRow,
    /// In file order.
    pub records: Records,
    /// Every head.
    pub heads: Vec<HeadRow>,
    /// What is wrong.
    pub issues: Vec<Issue>,
}

/// One record in the tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeRow {
    /// Its id.
    pub id: RecordId,
    /// Its parent, present or missing.
    pub parent: Option<RecordId>,
    /// What it is.
    pub kind: Kind,
    /// Whose record it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Speaker>,
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
    /// Whether it is part of a side conversation.
    pub sidechain: bool,
    /// Whether it is on the default branch.
    pub on_branch: bool,
    /// Its text, in one line.
    pub text: String,
    /// The calls it makes.
    pub tool_calls: Vec<CallRow>,
    /// The calls it answers.
    pub tool_results: Vec<ResultRow>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRow {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub input: Value,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultRow {
    /// The call's id.
    pub call_id: String,
    /// Whether it failed or was refused.
    pub is_error: bool,
}

/// What is wrong in one session's files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Examination {
    /// Its first file.
    pub path: String,
    /// Its other files, the oldest first, if the agent continued it in further files.
    #[serde(rename = "otherPaths", default, skip_serializing_if = "Vec::is_empty")]
    pub other_paths: Vec<String>,
    /// The dialect that it was read as.
    pub dialect: String,
    /// Lines of the first file.
    pub lines: u64,
    /// Records of all files.
    pub records: usize,
    /// What is wrong.
    pub issues: Vec<Issue>,
    /// The verdict on each line of the first file, if a profile was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdicts: Option<Vec<Verdict>>,
}
