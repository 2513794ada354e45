//! A session: the tree of a conversation, its branches and what is wrong with it. Bodies are read on demand.
//!
//! `read/open.rs` creates one; this file answers questions about it.

pub mod blob;
pub(crate) mod read;
pub(crate) mod backups;
pub(crate) mod tree;
pub(crate) mod derived;
pub(crate) mod join;
pub(crate) mod mask;
pub(crate) mod record_ref;
pub(crate) mod request;

pub use read::checkpoint::{READING_VERSION, Resumed};
pub use read::open::ReadOptions;
pub use read::source::Source;
pub use read::{VALUE_LIMIT_BYTES, detect, folder, sanitize};

use std::path::Path;

use jiff::Timestamp;

use crate::dialect::Dialect;
use crate::model::error::{Error, Result};
use crate::model::git;
use crate::model::issue::{Issue, Severity};
use crate::model::message::Part;
use crate::model::metadata::{FINISHED, INTERRUPTED};
use crate::model::named_enum;
pub use crate::model::place::Place;
use crate::model::record::{Body, Kind, RecordId, SessionId, Title, TitleSource};
use crate::session::derived::Derived;
use crate::session::mask::Mask;
use crate::session::read::files::Files;
use crate::session::read::tail::Tail;
pub use crate::session::record_ref::RecordRef;
pub use crate::session::request::{Request, RequestId};
pub use crate::session::tree::Bridge;
use crate::session::tree::NodeIx;
use crate::session::tree::branch;
pub use crate::session::tree::branch::HeadKind;
use crate::session::tree::facts::Facts;
use crate::session::tree::skeleton::{BaseGap, Flags, NO_TIME, Skeleton};

/// One session, as read from its files.
///
/// ```
/// use scrollback::{ReadOptions, Session, dialect};
///
/// let log = br#"{"type":"user","uuid":"q","parentUuid":null,"message":{"role":"user","content":"Two and two?"}}
/// {"type":"assistant","uuid":"a","parentUuid":"q","message":{"role":"assistant","content":"Four."}}
/// "#;
/// let native = dialect::named("native").expect("it is built in");
/// let session = Session::from_bytes(native, log.to_vec(), &ReadOptions::plain(jiff::Timestamp::UNIX_EPOCH));
/// assert_eq!(session.head().map(|head| head.id().to_string()), Some("a".to_owned()));
/// assert!(session.issues().is_empty());
/// ```
pub struct Session {
    pub(crate) source: Source,
    pub(crate) files: Files,
    pub(crate) skeleton: Skeleton,
    /// Facts from the file beside the log.
    pub(crate) sidecar: Facts,
    pub(crate) whole: bool,
    pub(crate) tail: Tail,
    pub(crate) derived: Derived,
    /// Masks what is read of it.
    pub(crate) mask: Option<Mask>,
}

named_enum! {
    /// How a branch ends.
    State {
        /// The model has answered.
        Clean = "clean",
        /// The last prompt has no answer.
        InterruptedPrompt = "interrupted-prompt",
        /// The last answer is unfinished: calls without results, or results without an answer.
        InterruptedTurn = "interrupted-turn",
        /// A record of the branch is missing.
        Degraded = "degraded",
    }
}

/// A head: the end of a branch.
#[derive(Debug, Clone, Copy)]
pub struct Head<'s> {
    /// Its last record.
    pub record: RecordRef<'s>,
    /// How it relates to the newest.
    pub kind: HeadKind,
}

/// The records from a root to a head.
#[derive(Debug, Clone)]
pub struct Branch<'s> {
    /// From the root to the head.
    pub records: Vec<RecordRef<'s>>,
    /// Missing parents on the branch.
    pub gaps: Vec<Gap<'s>>,
    /// The records of the cycle that the branch begins in, if any.
    pub cycle: Vec<RecordRef<'s>>,
}

/// A missing parent.
#[derive(Debug, Clone)]
pub struct Gap<'s> {
    /// The record whose parent is missing.
    pub child: RecordRef<'s>,
    /// The id of the missing parent.
    pub missing_parent: RecordId,
    /// The record that was taken as its parent instead.
    pub bridged_to: Option<RecordRef<'s>>,
}

/// How many ids an ambiguous name lists.
const AMBIGUOUS_LISTED: usize = 8;

impl Session {
    /// The session's id: from its records, else from its path.
    pub fn id(&self) -> SessionId {
        SessionId(self.derived.facts.session.clone().unwrap_or_else(|| self.source.name()))
    }

    /// Whether the file states the id: else the session is called after its place.
    pub(crate) fn states_its_id(&self) -> bool {
        self.derived.facts.session.is_some()
    }

    /// Its dialect.
    pub fn dialect(&self) -> &'static dyn Dialect {
        self.source.dialect
    }

    /// Its first file.
    pub fn path(&self) -> &Path {
        &self.source.path
    }

    /// False when only the end of the file was read.
    pub fn whole(&self) -> bool {
        self.whole
    }

    /// The bytes of all its files.
    pub fn size_bytes(&self) -> Result<u64> {
        self.files.size_bytes()
    }

    /// Every record, in file order.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = RecordRef<'_>> + ExactSizeIterator {
        (0..self.derived.tree.nodes.len() as NodeIx).map(|node| self.at(node))
    }

    /// How many lines the first file has; wrong if only its end was read.
    pub fn line_count(&self) -> u64 {
        u64::from(self.tail.at.line).saturating_sub(1) + u64::from(!self.tail.pending.is_empty())
    }

    /// The record that the conversation continues from.
    pub fn head(&self) -> Option<RecordRef<'_>> {
        self.derived.head.map(|node| self.at(node))
    }

    /// Every head, the newest first.
    pub fn heads(&self) -> impl ExactSizeIterator<Item = Head<'_>> {
        let Derived { tree, keys, heads, .. } = &self.derived;
        let heads = heads.get_or_init(|| branch::heads(&self.skeleton, tree, keys));
        heads.iter().map(|(node, kind)| Head { record: self.at(*node), kind: *kind })
    }

    /// The record with this id.
    pub fn record(&self, id: &RecordId) -> Option<RecordRef<'_>> {
        let node = self.skeleton.ids.find(id.as_str()).and_then(|id| self.derived.tree.named(id));
        node.map(|node| self.at(node))
    }

    /// The record with this id, or with the only id that begins with it.
    pub fn find(&self, name: &str) -> Result<RecordRef<'_>> {
        if let Some(node) = self.skeleton.ids.find(name).and_then(|id| self.derived.tree.named(id)) {
            return Ok(self.at(node));
        }
        // The made-up id of a copy is not in the table of ids.
        if let Some(copy) = self.records().find(|record| record.id() == name) {
            return Ok(copy);
        }
        let mut matching = self.records().filter(|record| record.id().starts_with(name));
        match (matching.next(), matching.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(Error::NoRecord(name.to_owned())),
            (Some(first), Some(second)) => {
                let all = [first, second].into_iter().chain(matching.take(AMBIGUOUS_LISTED - 2));
                let records = all.map(|record| RecordId(record.id().into_owned())).collect();
                Err(Error::AmbiguousRecord { prefix: name.to_owned(), records })
            }
        }
    }

    /// The branch that ends in this record; if only a compaction asked for it, in the one before.
    pub fn branch(&self, head: RecordRef<'_>) -> Branch<'_> {
        let Derived { tree, keys, .. } = &self.derived;
        let is_summary = tree.entry(&self.skeleton, head.node).flags.has(Flags::SUMMARY);
        let head = Some(head).filter(|_| is_summary).and_then(|head| head.parent()).unwrap_or(head);
        let nodes = branch::walk(&self.skeleton, tree, keys, head.node);
        let gap = |node: NodeIx| {
            let id = tree.missing.get(&node)?;
            let bridged_to = tree.bridged.get(&node).map(|to| self.at(*to));
            let missing_parent = RecordId(self.skeleton.ids.get(*id).to_owned());
            Some(Gap { child: self.at(node), missing_parent, bridged_to })
        };
        // Where only the end of a file was read, its beginning is not a gap. Nor do the parents of pulled-in results count.
        let mut gaps: Vec<Gap<'_>> = tree.lineage(head.node).filter(|_| self.whole).filter_map(gap).collect();
        gaps.reverse();
        let cycle = nodes.first().and_then(|root| tree.cycles.iter().find(|cycle| cycle.first() == Some(root)));
        Branch {
            gaps,
            cycle: cycle.into_iter().flatten().map(|node| self.at(*node)).collect(),
            records: nodes.into_iter().map(|node| self.at(node)).collect(),
        }
    }

    /// How a branch ends.
    pub fn state(&self, branch: &Branch<'_>) -> State {
        if !branch.gaps.is_empty() || self.derived.tree.unfollowed_base.is_some() {
            return State::Degraded;
        }
        match branch::end(&self.derived.keys, &branch.records) {
            State::Clean if is_unfinished(branch) => State::InterruptedTurn,
            State::InterruptedTurn if is_ended_after_results(branch) => State::Clean,
            state => state,
        }
    }

    /// Whether the session that this one begins in was not found.
    pub(crate) fn base_is_missing(&self) -> bool {
        let Derived { tree, .. } = &self.derived;
        let unfollowed = tree.unfollowed_base.map(|(_, why)| why);
        tree.base_gaps.values().copied().chain(unfollowed).any(|why| why == BaseGap::NoSession)
    }

    /// What is wrong, in file order.
    pub fn issues(&self) -> &[Issue] {
        &self.derived.issues.kept
    }

    /// How many issues there are, including those beyond the limit.
    pub fn issue_count(&self) -> u64 {
        self.derived.issues.kept.len() as u64 + self.derived.issues.beyond()
    }

    /// Whether something is lost or unreliable.
    pub fn has_errors(&self) -> bool {
        self.issues().iter().any(|issue| issue.severity == Severity::Error) || self.derived.issues.errors_beyond > 0
    }

    /// Its title: the most binding one, and of those the last.
    pub fn title(&self) -> Option<&Title> {
        self.derived.facts.title()
    }

    /// The working directory of the first record that has one.
    pub fn cwd(&self) -> Option<&str> {
        self.derived.facts.cwd.as_deref()
    }

    /// Whom it is with, a person or a room, if the format says so.
    pub fn with(&self) -> Option<&str> {
        self.derived.facts.with.as_deref()
    }

    /// The git branch of the last record that has one.
    pub fn git_branch(&self) -> Option<&str> {
        self.derived.facts.git_branch.as_deref()
    }

    /// The operating system in the last record that has one.
    pub fn platform(&self) -> Option<&str> {
        self.derived.facts.platform.as_deref()
    }

    /// The kind of user in the last record that has one.
    pub fn user_type(&self) -> Option<&str> {
        self.derived.facts.user_type.as_deref()
    }

    /// The branch that is checked out now where the session began, if the session recorded another one last.
    pub fn git_branch_now(&self) -> Option<String> {
        let recorded = self.git_branch()?;
        // A log is untrusted: a relative path would be one of the reader's.
        let cwd = self.cwd().map(Path::new).filter(|cwd| cwd.is_absolute())?;
        git::branch(cwd).filter(|now| now != recorded)
    }

    /// The models that answered, in the order of their first answer.
    pub fn models(&self) -> &[String] {
        &self.derived.facts.models
    }

    /// The session that started this one as a sub-agent, and the tool call there.
    pub fn parent_session(&self) -> Option<(&str, Option<&str>)> {
        let Facts { parent_session, parent_call, .. } = &self.derived.facts;
        parent_session.as_deref().map(|parent| (parent, parent_call.as_deref()))
    }

    /// Uses a summary from another session's file as the title, if there is no title.
    pub fn title_from_summary(&mut self, summary: String) {
        let title = Title { text: summary, source: TitleSource::Summary };
        if self.title().is_none() {
            self.derived.facts.add_title(title);
        }
    }

    /// The session that this one was forked from.
    pub fn forked_from(&self) -> Option<&str> {
        self.derived.facts.forked_from.as_deref()
    }

    /// Each kind of record that the dialect does not know, and how many there are.
    pub fn unknown_kinds(&self) -> impl Iterator<Item = (&str, u64)> {
        self.derived.facts.unknown.iter().map(|(kind, count)| (kind.as_str(), *count))
    }

    /// The agent's version in the last record that has one.
    pub fn agent_version(&self) -> Option<&str> {
        self.derived.facts.version.as_deref()
    }

    /// Summaries of other sessions in this one's file, each with that session's last record.
    pub fn summaries_of_others(&self) -> &[(String, String)] {
        &self.derived.facts.summaries
    }

    /// The time of the earliest record.
    pub fn started(&self) -> Option<Timestamp> {
        self.own_times().min().and_then(|at| Timestamp::from_microsecond(at).ok())
    }

    /// The time of the latest record (reading rule 9).
    pub fn updated(&self) -> Option<Timestamp> {
        self.own_times().max().and_then(|at| Timestamp::from_microsecond(at).ok())
    }

    fn own_times(&self) -> impl Iterator<Item = i64> + '_ {
        let own = self.skeleton.entries.iter().filter(|entry| !entry.flags.has(Flags::INHERITED));
        own.map(|entry| entry.at).filter(|at| *at != NO_TIME)
    }

    pub(crate) fn at(&self, node: NodeIx) -> RecordRef<'_> {
        RecordRef { session: self, node }
    }
}

/// Whether the agent said, behind the results of its last answer's calls, that it ended the turn.
fn is_ended_after_results(branch: &Branch<'_>) -> bool {
    let mut spoke = branch
        .records
        .iter()
        .rev()
        .filter(|record| matches!(record.kind(), Kind::Assistant | Kind::ToolResult));
    let mut results_end = None;
    let Some(answer) = spoke.find(|record| {
        results_end = results_end.max(record.end().filter(|_| record.kind() == Kind::ToolResult));
        record.kind() == Kind::Assistant
    }) else {
        return false;
    };
    let is_marked = || {
        let content = answer.exact_body().ok().and_then(|body| body.content().map(|content| content.metadata.clone()));
        content.is_some_and(|metadata| metadata.get(FINISHED) == Some(&true.into()))
    };
    results_end.is_some() && answer.end() > results_end && is_marked()
}

/// Whether the last answer ends with thinking, or is marked as cut off.
fn is_unfinished(branch: &Branch<'_>) -> bool {
    let spoke = |record: &&RecordRef<'_>| matches!(record.kind(), Kind::Assistant | Kind::User | Kind::Compaction);
    let Some(last) = branch.records.iter().rev().find(spoke).filter(|record| record.kind() == Kind::Assistant) else {
        return false;
    };
    let is_empty = |part: &Part| match part {
        Part::Text(text) => text.text.trim().is_empty(),
        part => matches!(part, Part::StepStart),
    };
    let body = last.exact_body();
    let mut contents = body.iter().filter_map(Body::content);
    if contents.any(|content| content.metadata.get(INTERRUPTED) == Some(&true.into())) {
        return true;
    }
    let mut parts = body.iter().filter_map(Body::content).flat_map(|content| &content.parts);
    parts.rfind(|part| !is_empty(part)).is_some_and(|part| matches!(part, Part::Reasoning(_)))
}
