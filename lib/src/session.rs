//! A session: the whole tree of a conversation, its branches and what is wrong with it. Bodies are read when asked for.
//!
//! `reading.rs` makes one; this file answers questions about it.

use std::borrow::Cow;
use std::path::Path;

use hashbrown::{HashMap, HashSet};
use jiff::Timestamp;

pub use crate::branch::HeadKind;
use crate::branch::{self, HeadEntry, Keys};
use crate::dialect::{Dialect, Repeated};
use crate::error::Result;
use crate::facts::Facts;
use crate::issue::{Issue, IssueKind, Issues, Severity};
use crate::join::Joining;
use crate::mend;
use crate::reading::Tail;
use crate::record::{Body, Kind, RecordId, SessionId, Title, Usage};
pub use crate::skeleton::Place;
use crate::skeleton::{Entry, Flags, KeyRole, NO_TIME, ROOT, Skeleton};
use crate::source::{Files, Source};
pub use crate::tree::Bridge;
use crate::tree::{NodeIx, Tree};

/// One session as it was read.
///
/// ```
/// use scrollback::{dialect, reading::Reading, session::Session};
///
/// let log = br#"{"type":"user","uuid":"q","parentUuid":null,"message":{"role":"user","content":"Two and two?"}}
/// {"type":"assistant","uuid":"a","parentUuid":"q","message":{"role":"assistant","content":"Four."}}
/// "#;
/// let native = dialect::named("native").expect("it is built in");
/// let session = Session::from_bytes(native, log.to_vec(), &Reading::plain(jiff::Timestamp::UNIX_EPOCH));
/// assert_eq!(session.head().map(|head| head.id().to_string()), Some("a".to_owned()));
/// assert!(session.issues().is_empty());
/// ```
pub struct Session {
    pub(crate) source: Source,
    pub(crate) files: Files,
    pub(crate) skeleton: Skeleton,
    /// What a file beside the log says.
    pub(crate) sidecar: Facts,
    pub(crate) whole: bool,
    pub(crate) tail: Tail,
    pub(crate) shape: Shape,
}

/// What is derived from the skeleton.
#[derive(Default)]
pub(crate) struct Shape {
    pub(crate) tree: Tree,
    pub(crate) keys: Keys,
    pub(crate) heads: Vec<HeadEntry>,
    pub(crate) facts: Facts,
    pub(crate) issues: Issues,
}

/// How a branch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The model has answered.
    Clean,
    /// A prompt waits for its answer.
    InterruptedPrompt,
    /// An answer waits for its tools, or tools for the model.
    InterruptedTurn,
    /// A record of the branch is missing.
    Degraded,
}

impl State {
    /// The word that `--json` prints for it.
    pub fn name(self) -> &'static str {
        match self {
            State::Clean => "clean",
            State::InterruptedPrompt => "interrupted-prompt",
            State::InterruptedTurn => "interrupted-turn",
            State::Degraded => "degraded",
        }
    }
}

/// One request to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Request {
    /// By the hash of its name, the same in every session.
    Named(u64),
    /// By the record that tells of it, known in this session only.
    Record(u32),
}

/// One record of a session.
#[derive(Clone, Copy)]
pub struct RecordRef<'s> {
    session: &'s Session,
    pub(crate) node: NodeIx,
}

/// An end of a conversation.
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
    /// Root to head, links of every kind.
    pub records: Vec<RecordRef<'s>>,
    /// Places where a parent is missing.
    pub gaps: Vec<Gap<'s>>,
    /// The records of a cycle that the walk ran into.
    pub cycle: Vec<RecordRef<'s>>,
}

/// A missing parent.
#[derive(Debug, Clone)]
pub struct Gap<'s> {
    /// The record whose parent is missing.
    pub child: RecordRef<'s>,
    /// The id that nobody wrote.
    pub missing_parent: RecordId,
    /// The record that it was hung on all the same.
    pub bridged_to: Option<RecordRef<'s>>,
}

/// Why a record could not be named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFound {
    /// No record's id begins so.
    Nothing,
    /// Several do: some of them.
    Several(Vec<RecordId>),
}

/// How many ids an ambiguous name lists.
const AMBIGUOUS_LISTED: usize = 8;

impl Session {
    /// What the session is called: by its records, else by its place.
    pub fn id(&self) -> SessionId {
        SessionId(self.shape.facts.session.clone().unwrap_or_else(|| self.source.name()))
    }

    /// Who wrote it.
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
        (0..self.shape.tree.nodes.len() as NodeIx).map(|node| self.at(node))
    }

    /// How many lines the first file has; unknown when only its end was read.
    pub fn line_count(&self) -> u64 {
        u64::from(self.tail.at.line).saturating_sub(1) + u64::from(!self.tail.pending.is_empty())
    }

    /// The record that the conversation goes on from.
    pub fn head(&self) -> Option<RecordRef<'_>> {
        self.shape.heads.first().map(|head| self.at(head.node))
    }

    /// Every end of a conversation, the newest first.
    pub fn heads(&self) -> impl ExactSizeIterator<Item = Head<'_>> {
        self.shape.heads.iter().map(|head| Head { record: self.at(head.node), kind: head.kind })
    }

    /// The record with this id, or with the only id that begins so.
    pub fn find(&self, name: &str) -> std::result::Result<RecordRef<'_>, NotFound> {
        if let Some(node) = self.skeleton.ids.find(name).and_then(|id| self.shape.tree.named(id)) {
            return Ok(self.at(node));
        }
        // A copy's made-up id is nobody's beginning, but it names its record.
        if let Some(copy) = self.records().find(|record| record.id() == name) {
            return Ok(copy);
        }
        let mut begin_so = self.records().filter(|record| record.id().starts_with(name));
        match (begin_so.next(), begin_so.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(NotFound::Nothing),
            (Some(first), Some(second)) => {
                let all = [first, second].into_iter().chain(begin_so.take(AMBIGUOUS_LISTED - 2));
                Err(NotFound::Several(all.map(|record| RecordId(record.id().into_owned())).collect()))
            }
        }
    }

    /// The branch that ends in this record.
    pub fn branch(&self, head: RecordRef<'_>) -> Branch<'_> {
        let Shape { tree, keys, .. } = &self.shape;
        let nodes = branch::walk(&self.skeleton, tree, keys, head.node);
        let gap = |node: NodeIx| {
            let id = tree.missing.get(&node)?;
            let bridged_to = tree.bridged.get(&node).map(|to| self.at(*to));
            let missing_parent = RecordId(self.skeleton.ids.get(*id).to_owned());
            Some(Gap { child: self.at(node), missing_parent, bridged_to })
        };
        // The end of a file read backwards begins somewhere: that is no gap. Nor does it matter what a result hangs on.
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
        if !branch.gaps.is_empty() {
            return State::Degraded;
        }
        match branch::end(&self.shape.keys, &branch.records) {
            branch::End::Answered => State::Clean,
            branch::End::Prompt => State::InterruptedPrompt,
            branch::End::Turn => State::InterruptedTurn,
        }
    }

    /// What is wrong, in file order.
    pub fn issues(&self) -> &[Issue] {
        &self.shape.issues.kept
    }

    /// How many issues there are, those included that are too many to be kept.
    pub fn issue_count(&self) -> u64 {
        self.shape.issues.kept.len() as u64 + self.shape.issues.beyond()
    }

    /// Whether something is lost or cannot be trusted.
    pub fn has_errors(&self) -> bool {
        self.issues().iter().any(|issue| issue.severity == Severity::Error) || self.shape.issues.errors_beyond > 0
    }

    /// The title that somebody gave it: the most binding, and of those the last.
    pub fn title(&self) -> Option<&Title> {
        self.shape.facts.title()
    }

    /// The working directory that its first record tells.
    pub fn cwd(&self) -> Option<&str> {
        self.shape.facts.cwd.as_deref()
    }

    /// The git branch that its last record tells.
    pub fn git_branch(&self) -> Option<&str> {
        self.shape.facts.git_branch.as_deref()
    }

    /// The models that answered, in the order of their first answer.
    pub fn models(&self) -> &[String] {
        &self.shape.facts.models
    }

    /// The session that this one is a sub-agent's work for, and the tool call there that started it.
    pub fn parent_session(&self) -> Option<(&str, Option<&str>)> {
        let Facts { parent_session, parent_call, .. } = &self.shape.facts;
        parent_session.as_deref().map(|parent| (parent, parent_call.as_deref()))
    }

    /// Each kind of record that the dialect does not know, and how many there are.
    pub fn unknown_kinds(&self) -> impl Iterator<Item = (&str, u64)> {
        self.shape.facts.unknown.iter().map(|(kind, count)| (kind.as_str(), *count))
    }

    /// The agent's version, as the last record tells it.
    pub fn agent_version(&self) -> Option<&str> {
        self.shape.facts.version.as_deref()
    }

    /// Tokens of the session's own requests, each counted once (reading rule 6).
    pub fn usage(&self) -> Option<Usage> {
        let requests = self.requests().into_values().reduce(|mut sum, usage| {
            sum.add(usage);
            sum
        });
        requests.or(self.skeleton.totals.sum)
    }

    /// The session's own requests with what each cost. A copy of a session repeats the names of the requests it copies.
    pub fn requests(&self) -> HashMap<Request, Usage> {
        let repeats = self.shape.tree.issues.iter().filter(|found| found.kind == IssueKind::DuplicateLine);
        let repeats: HashSet<u32> = repeats.map(|found| found.entry).collect();
        let inherited = |entry: u32| self.skeleton.entries[entry as usize].flags.has(Flags::INHERITED);
        let own = |entry: u32| !inherited(entry) && !repeats.contains(&entry);
        let distinct = self.dialect().habits().repeated == Repeated::Distinct;
        let record = |entry: u32| if distinct { entry } else { self.skeleton.entries[entry as usize].id };
        // A named request repeats its usage on each of its records, more or less finished; a record's own only grows.
        let mut requests: HashMap<Request, Usage> = HashMap::new();
        for told in self.skeleton.usages.iter().filter(|told| own(told.entry)) {
            let request = told.request.map_or_else(|| Request::Record(record(told.entry)), Request::Named);
            let known = requests.entry(request).or_insert(told.usage);
            if told.request.is_none() || told.usage.output >= known.output {
                *known = told.usage;
            }
        }
        requests
    }

    /// Summaries of other sessions that this one's file holds, each with the record that it ends with.
    pub fn summaries_of_others(&self) -> &[(String, String)] {
        &self.shape.facts.summaries
    }

    /// When the first record was written.
    pub fn started(&self) -> Option<Timestamp> {
        self.own_times().min().and_then(|at| Timestamp::from_microsecond(at).ok())
    }

    /// The newest instant in the session (reading rule 9).
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

impl<'s> RecordRef<'s> {
    fn entry(self) -> &'s Entry {
        self.session.shape.tree.entry(&self.session.skeleton, self.node)
    }

    /// Its id; a second record of the same id is told apart by a number.
    pub fn id(self) -> Cow<'s, str> {
        let id = self.session.skeleton.ids.get(self.entry().id);
        match self.session.shape.tree.nodes[self.node as usize].copy {
            0 | 1 => Cow::Borrowed(id),
            copy => Cow::Owned(format!("{id}~{copy}")),
        }
    }

    /// Its number in file order, counted from 0.
    pub fn order(self) -> usize {
        self.node as usize
    }

    /// The record that it hangs on.
    pub fn parent(self) -> Option<RecordRef<'s>> {
        self.session.shape.tree.parent(self.node).map(|node| self.session.at(node))
    }

    /// The records that hang on it, in file order.
    pub fn children(self) -> impl DoubleEndedIterator<Item = RecordRef<'s>> + ExactSizeIterator {
        self.session.shape.tree.children(self.node).iter().map(move |node| self.session.at(*node))
    }

    /// The id of its parent, when that is missing.
    pub fn missing_parent(self) -> Option<&'s str> {
        self.session.shape.tree.missing.get(&self.node).map(|id| self.session.skeleton.ids.get(*id))
    }

    /// Whether its own entry says that a conversation begins with it.
    pub(crate) fn is_root(self) -> bool {
        self.entry().parent == ROOT
    }

    /// Whether it is another session's, which this one begins in.
    pub fn is_inherited(self) -> bool {
        self.entry().flags.has(Flags::INHERITED)
    }

    /// What it is.
    pub fn kind(self) -> Kind {
        self.entry().kind
    }

    /// When it was written: the latest of its pieces.
    pub fn at(self) -> Option<Timestamp> {
        let at = self.session.shape.tree.nodes[self.node as usize].at;
        (at != NO_TIME).then(|| Timestamp::from_microsecond(at).ok()).flatten()
    }

    /// Whether it belongs to a side conversation.
    pub fn is_sidechain(self) -> bool {
        self.entry().flags.has(Flags::SIDECHAIN)
    }

    /// Whether it has no place in the parent chain.
    pub fn is_side(self) -> bool {
        self.entry().flags.has(Flags::SIDE)
    }

    /// Whether it tells of a failure of the agent itself.
    pub fn is_failure(self) -> bool {
        self.entry().flags.has(Flags::FAILURE)
    }

    /// Whether it is one item of an answer.
    pub(crate) fn is_item(self) -> bool {
        self.entry().flags.has(Flags::ITEM)
    }

    /// The hashes of what else it belongs to.
    pub(crate) fn keys(self, wanted: KeyRole) -> impl Iterator<Item = u64> + 's {
        self.session.shape.keys.of(self.node).filter(move |(role, _)| *role == wanted).map(|(_, hash)| hash)
    }

    /// Where its first piece stands.
    pub fn place(self) -> Place {
        self.entry().place
    }

    /// The file of that place.
    pub fn file(self) -> &'s Path {
        &self.session.files.0[usize::from(self.place().file)].path
    }

    /// What it says, all its pieces joined.
    pub fn body(self) -> Result<Body> {
        let texts = self.texts()?;
        let mut pieces = texts.iter().map(|text| self.session.dialect().body(text));
        let Some(first) = pieces.next() else { return Ok(Body::Other(serde_json::Value::Null)) };
        let mut joining = Joining::begin(first);
        pieces.for_each(|piece| joining.add(piece));
        Ok(joining.finish())
    }

    /// The JSON of its pieces, as it stands in the file.
    pub fn raw(self) -> Result<Vec<Vec<u8>>> {
        let entries = self.session.shape.tree.entries_of(self.node);
        let read = |entry: &u32| {
            let Entry { place, hash, .. } = self.session.skeleton.entries[*entry as usize];
            self.session.files.read(place, hash)
        };
        entries.iter().map(read).collect()
    }

    fn texts(self) -> Result<Vec<String>> {
        Ok(self.raw()?.iter().map(|bytes| mend::whole(bytes).into_owned()).collect())
    }
}

impl std::fmt::Debug for RecordRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.id())
    }
}

impl PartialEq for RecordRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node && std::ptr::eq(self.session, other.session)
    }
}
