//! A branch as messages: groups records into messages and reads them.
//!
//! ```text
//! records   u1   a1 r1 a2   c   u2   a3(call) u3 r3        r: results, c: a compaction
//! messages  u1   a1+r1+a2+c     u2   a3+r3    u3           a result belongs to its call's message
//! ```
//!
//! Grouping needs only links; bodies are read message by message, so that a long branch needs little memory.

use hashbrown::{HashMap, HashSet};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::model::error::Result;
use crate::model::message::RESPONSES_PER_MESSAGE;
use crate::model::message::{Message, Role};
use crate::model::record::Kind;
use crate::session::tree::skeleton::KeyRole;
use crate::session::{Branch, RecordRef};
use crate::view::assemble::{self, MessageRecords};

/// The messages of a branch.
///
/// ```
/// use scrollback::view::Conversation;
/// use scrollback::{Part, ReadOptions, Session, dialect};
///
/// let log = br#"{"role":"user","content":"Two and two?"}
/// {"role":"assistant","content":"Four."}"#;
/// let native = dialect::named("native").expect("it is built in");
/// let session = Session::from_bytes(native, log.to_vec(), &ReadOptions::plain(jiff::Timestamp::UNIX_EPOCH));
/// let branch = session.branch(session.head().expect("it has records"));
/// let conversation = Conversation::new(&branch);
/// assert_eq!(conversation.len(), 2);
/// assert_eq!(conversation.messages(0..1).next().transpose()?.expect("it is there").parts, [Part::text("Two and two?")]);
/// # Ok::<(), scrollback::Error>(())
/// ```
pub struct Conversation<'b, 's> {
    branch: &'b Branch<'s>,
    groups: Vec<Group>,
    /// Every call on the branch, by hash.
    calls: HashMap<u64, usize>,
}

/// The records of one message, by position on the branch.
struct Group {
    role: Role,
    /// The record that the message is named after.
    first: usize,
    /// All of them, in the order of the branch.
    records: Vec<usize>,
    /// Whether it continues the turn of the message before it.
    continues: bool,
}

impl<'b, 's> Conversation<'b, 's> {
    /// Finds the messages of a branch.
    pub fn new(branch: &'b Branch<'s>) -> Self {
        let mut grouper = Grouper { groups: Vec::new(), waiting: Vec::new(), turn: None, calls: HashMap::new() };
        for (at, record) in branch.records.iter().enumerate() {
            grouper.take(at, *record);
        }
        grouper.finish();
        Conversation { branch, groups: grouper.groups, calls: grouper.calls }
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// How many messages a person or a model wrote: the agent's own notices and errors, and local commands do not count.
    pub fn message_count(&self) -> usize {
        self.groups.iter().filter(|group| self.counts(group)).count()
    }

    /// Where a page of so many of these messages begins that ends before the message at `end`; `None` if there are not so many.
    ///
    /// What does not count is on the page of the message that it follows.
    pub fn page_start(&self, end: usize, messages: usize) -> Option<usize> {
        let mut counted = (0..end).rev().filter(|at| self.counts(&self.groups[*at]));
        if messages == 0 { Some(end) } else { counted.nth(messages - 1) }
    }

    fn counts(&self, group: &Group) -> bool {
        let records = &self.branch.records;
        let is_error = || group.records.iter().all(|at| records[*at].is_failure());
        records[group.first].is_message() || (group.role != Role::System && !is_error())
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The message with this record; for a record without a message, the one before it.
    pub fn position(&self, record: RecordRef<'_>) -> Option<usize> {
        let at = self.branch.records.iter().position(|on_branch| on_branch.node == record.node)?;
        let holds = self.groups.iter().position(|group| group.records.contains(&at));
        holds
            .or_else(|| self.groups.iter().rposition(|group| group.first <= at))
            .or((!self.is_empty()).then_some(0))
    }

    /// Whether a message continues the turn of the one before it. The end, after the last message, continues nothing.
    pub(crate) fn continues(&self, message: usize) -> bool {
        self.groups.get(message).is_some_and(|group| group.continues)
    }

    /// Whether the branch holds the call of each result in a message.
    pub(crate) fn has_its_calls(&self, message: usize) -> bool {
        let results = self.records(message).flat_map(|record| record.keys(KeyRole::Result));
        results.into_iter().all(|call| self.calls.contains_key(&call))
    }

    /// The id of the message at this position, which must exist.
    pub fn id(&self, message: usize) -> String {
        self.first(message).id().into_owned()
    }

    /// The record that the message at this position is named after.
    pub(crate) fn first(&self, message: usize) -> RecordRef<'s> {
        self.branch.records[self.groups[message].first]
    }

    /// The role of a message.
    pub fn role(&self, message: usize) -> Option<Role> {
        self.groups.get(message).map(|group| group.role)
    }

    /// A hash of everything that a message consists of: if it is unchanged, so is the message. No body is read for it.
    pub fn made_of(&self, message: usize) -> u64 {
        let group = &self.groups[message];
        let mut made_of = Xxh3::new();
        made_of.update(&[group.role as u8, group.continues.into()]);
        if group.continues {
            made_of.update(self.id(message - 1).as_bytes());
        }
        for record in self.records(message).chain(self.late_results(message)) {
            record.hash_into(&mut made_of);
            // Whether a result is shown alone depends on the calls elsewhere on the branch.
            for call in record.keys(KeyRole::Result).chain(record.keys(KeyRole::Interim)) {
                made_of.update(&[self.calls.contains_key(&call).into()]);
            }
        }
        made_of.digest()
    }

    /// The records that a message is made of.
    pub fn records(&self, message: usize) -> impl Iterator<Item = RecordRef<'s>> + '_ {
        let records = self.groups.get(message).into_iter().flat_map(|group| &group.records);
        records.map(|at| self.branch.records[*at])
    }

    /// The records that tell how calls of a message ended after their results.
    fn late_results(&self, message: usize) -> impl Iterator<Item = RecordRef<'s>> + '_ {
        let mut known = HashSet::new();
        self.records(message)
            .flat_map(|record| record.late_results())
            .filter(move |record| known.insert(record.node))
    }

    /// Reads one message, if there is one at this position.
    pub fn message(&self, at: usize) -> Option<Result<Message>> {
        self.message_after(at, usize::MAX)
    }

    /// Reads a message as it was when it had only this many of its records.
    pub fn message_after(&self, at: usize, records: usize) -> Option<Result<Message>> {
        let group = self.groups.get(at)?;
        let is_whole = records >= group.records.len();
        let records: Vec<RecordRef<'s>> = self.records(at).take(records).collect();
        let late: Vec<RecordRef<'s>> = self.late_results(at).filter(|_| is_whole).collect();
        let continued = group.continues.then(|| &self.groups[at - 1]);
        let named = |group: &Group| self.branch.records[group.first].id().into_owned();
        let is_called = |call: &str| self.calls.contains_key(&xxh3_64(call.as_bytes()));
        let records = MessageRecords { records: &records, late_results: &late };
        Some(assemble::message(named(group), group.role, records, continued.map(named), &is_called))
    }

    /// Reads messages one by one.
    pub fn messages(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = Result<Message>> + '_ {
        range.map_while(|at| self.message(at))
    }
}

struct Grouper {
    groups: Vec<Group>,
    /// Records that belong to the message that comes next.
    waiting: Vec<usize>,
    turn: Option<OpenTurn>,
    /// The group that made each call, by hash.
    calls: HashMap<u64, usize>,
}

struct OpenTurn {
    responses: usize,
    /// The answer that the last record was a block of.
    answer: Option<u64>,
    /// The last record was an item of an answer.
    in_items: bool,
}

impl Grouper {
    fn take(&mut self, at: usize, record: RecordRef<'_>) {
        match record.kind() {
            Kind::User => {
                self.turn = None;
                self.begin(Role::User, at);
                self.answer_calls(at, record);
            }
            Kind::System if !record.is_failure() => {
                self.turn = None;
                self.begin(Role::System, at);
            }
            Kind::System => self.continue_turn(at),
            Kind::ToolResult => self.result(at, record),
            Kind::Assistant if record.is_message() => {
                self.turn = None;
                self.begin(Role::Assistant, at);
                let own = self.groups.len() - 1;
                self.calls.extend(record.keys(KeyRole::Call).map(|call| (call, own)));
            }
            Kind::Assistant => self.answer(at, record),
            Kind::Compaction | Kind::Rewind | Kind::Restore => match self.groups.last_mut() {
                // After an answer.
                Some(group) if self.turn.is_some() || group.role == Role::Assistant => group.records.push(at),
                Some(_) | None => self.waiting.push(at),
            },
            Kind::Attachment if record.is_state() => match self.groups.last_mut() {
                Some(group) => group.records.push(at),
                None => self.waiting.push(at),
            },
            Kind::Attachment | Kind::Snapshot | Kind::Title | Kind::Header | Kind::Other => {}
        }
    }

    fn begin(&mut self, role: Role, at: usize) {
        let mut records = std::mem::take(&mut self.waiting);
        records.push(at);
        self.groups.push(Group { role, first: at, records, continues: false });
    }

    /// Adds to the open turn, or begins one.
    fn continue_turn(&mut self, at: usize) {
        match (&self.turn, self.groups.last_mut()) {
            (Some(_), Some(group)) => group.records.push(at),
            _ => {
                self.begin(Role::Assistant, at);
                self.turn = Some(OpenTurn { responses: 0, answer: None, in_items: false });
            }
        }
    }

    fn answer(&mut self, at: usize, record: RecordRef<'_>) {
        let group = record.keys(KeyRole::Group).next();
        let same_answer =
            |turn: &OpenTurn| (group.is_some() && turn.answer == group) || (record.is_item() && turn.in_items);
        let full = |turn: &OpenTurn| turn.responses >= RESPONSES_PER_MESSAGE && !same_answer(turn);
        if self.turn.as_ref().is_some_and(full) {
            self.begin(Role::Assistant, at);
            if let Some(group) = self.groups.last_mut() {
                group.continues = true;
            }
            self.turn = Some(OpenTurn { responses: 0, answer: None, in_items: false });
        } else {
            self.continue_turn(at);
        }
        if let Some(turn) = &mut self.turn {
            turn.responses += usize::from(!same_answer(turn));
            (turn.answer, turn.in_items) = (group, record.is_item());
        }
        for call in record.keys(KeyRole::Call) {
            self.calls.insert(call, self.groups.len() - 1);
        }
    }

    /// Adds a result to the message with its call, even if other messages came in between.
    fn result(&mut self, at: usize, record: RecordRef<'_>) {
        if let Some(turn) = &mut self.turn {
            turn.in_items = false;
        }
        if !self.answer_calls(at, record) {
            self.continue_turn(at);
        }
    }

    /// Adds a record to the messages whose calls it answers. Returns whether there is any.
    fn answer_calls(&mut self, at: usize, record: RecordRef<'_>) -> bool {
        let results = record.keys(KeyRole::Result).chain(record.keys(KeyRole::Interim));
        let mut owners: Vec<usize> = results.filter_map(|call| self.calls.get(&call).copied()).collect();
        owners.sort_unstable();
        owners.dedup();
        let answers = !owners.is_empty();
        owners.into_iter().for_each(|owner| self.groups[owner].records.push(at));
        answers
    }

    /// Adds records that still wait for a message to the last one.
    fn finish(&mut self) {
        if let Some(group) = self.groups.last_mut() {
            group.records.append(&mut self.waiting);
        }
    }
}
