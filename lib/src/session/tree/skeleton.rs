//! The skeleton: what was read so far, as one flat log of links. Bodies stay in the file.
//!
//! It only grows, and can be cut back to an earlier length; the tree is derived from it (`tree.rs`). That is what makes a
//! growing file and a whole one the same thing: the unfinished last line is added, looked at, and cut off again.

use jiff::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

use crate::dialect::{Event, Key, Link, Parent, SessionFacts};
use crate::model::issue::{Issue, IssueKind, Issues, quoted};
use crate::model::place::Place;
use crate::model::record::{Cost, Kind, Title, Usage};
use crate::model::time::{self, Micros, Told};
use crate::session::tree::facts::{Facts, Totals};
use crate::session::tree::ids::{IdIndex, Ids};

/// A place, and the hash of the bytes there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashedSpan {
    pub(crate) place: Place,
    pub(crate) hash: u64,
}

/// One record, or one fragment of a record, as the tree knows it: 56 bytes and its id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    /// Of the value's bytes: tells a repeated line from a changed one, and a file that changed under us.
    pub(crate) hash: u64,
    /// `NO_TIME` when the record states none that counts.
    pub(crate) at: Micros,
    pub(crate) id: IdIndex,
    /// A `IdIndex`, `ROOT` or `PREVIOUS`.
    pub(crate) parent: u32,
    pub(crate) kind: Kind,
    pub(crate) flags: Flags,
}

pub(crate) const ROOT: u32 = u32::MAX;
pub(crate) const PREVIOUS: u32 = u32::MAX - 1;
pub(crate) const NO_TIME: Micros = Micros::MIN;

/// What else the tree must know, a bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    pub(crate) const SIDECHAIN: Flags = Flags(1);
    pub(crate) const SIDE: Flags = Flags(2);
    pub(crate) const NUMBERED: Flags = Flags(4);
    /// The record is another session's: this one begins there.
    pub(crate) const INHERITED: Flags = Flags(8);
    /// It tells of a failure of the agent.
    pub(crate) const FAILURE: Flags = Flags(16);
    /// The record says that it is of a side conversation. In a sub-agent's own session that is the conversation itself.
    pub(crate) const SAID_ASIDE: Flags = Flags(32);
    /// It is one item of an answer.
    pub(crate) const ITEM: Flags = Flags(64);
    /// It only reacts to another record.
    pub(crate) const REACTION: Flags = Flags(128);
    /// It is a whole message.
    pub(crate) const MESSAGE: Flags = Flags(256);
    /// It only tells something of the message before it.
    pub(crate) const STATE: Flags = Flags(512);

    pub(crate) fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn with(self, other: Flags, wanted: bool) -> Flags {
        if wanted { Flags(self.0 | other.0) } else { self }
    }

    fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

/// What a record belongs to, by hash: checked against the body where it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyEntry {
    pub(crate) entry: u32,
    pub(crate) role: KeyRole,
    pub(crate) hash: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum KeyRole {
    Group,
    Call,
    Result,
    Interim,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct UsageEntry {
    pub(crate) entry: u32,
    /// The hash of the request's name; without one the record is the request.
    pub(crate) request: Option<u64>,
    pub(crate) usage: Usage,
    /// The number of the model's name.
    pub(crate) model: Option<IdIndex>,
    pub(crate) cost: Option<Cost>,
}

/// What happened between two entries: `at` entries were there before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Control {
    pub(crate) at: u32,
    /// Where the value begins that told it.
    pub(crate) offset: u64,
    pub(crate) what: ControlKind,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum ControlKind {
    Leaf(IdIndex),
    Rewound(IdIndex),
    Cut(IdIndex),
    /// So many prompts, counted from the end.
    CutTurns(u64),
    ReplaceAll,
    /// What comes next hangs on a record, or begins in a session, that is not there.
    MissingBase(IdIndex, BaseGap),
}

/// Why what a session begins in is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BaseGap {
    /// There is no such session, or it cannot be read.
    NoSession,
    /// That session begins in this one.
    Cycle,
    /// That session ends before this record.
    EndsEarly,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Skeleton {
    /// What issues call each file: the session's first one needs no name.
    pub(crate) file_names: Vec<Option<String>>,
    pub(crate) ids: Ids,
    pub(crate) entries: Vec<Entry>,
    pub(crate) keys: Vec<KeyEntry>,
    pub(crate) usages: Vec<UsageEntry>,
    /// The names of the models in `usages` and `growth`.
    pub(crate) models: Ids,
    /// The model that the last record beside the conversation names: it answers what follows.
    pub(crate) model: Option<IdIndex>,
    pub(crate) totals: Totals,
    /// What the running totals grew by. It counts where no record tells the cost of one request.
    pub(crate) growth: Vec<UsageEntry>,
    pub(crate) controls: Vec<Control>,
    pub(crate) issues: Issues,
    pub(crate) facts: Facts,
}

/// The headers of a copy of a copy, and what stands between them.
const COPIED_HEADERS: usize = 64;

/// How far a skeleton had grown.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    ids: usize,
    entries: usize,
    keys: usize,
    usages: usize,
    models: usize,
    model: Option<IdIndex>,
    totals: Totals,
    growth: usize,
    controls: usize,
    issues: usize,
    errors_beyond: u64,
    notes_beyond: u64,
    facts: Facts,
}

impl Skeleton {
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            ids: self.ids.len(),
            entries: self.entries.len(),
            keys: self.keys.len(),
            usages: self.usages.len(),
            models: self.models.len(),
            model: self.model,
            totals: self.totals,
            growth: self.growth.len(),
            controls: self.controls.len(),
            issues: self.issues.kept.len(),
            errors_beyond: self.issues.errors_beyond,
            notes_beyond: self.issues.notes_beyond,
            facts: self.facts.clone(),
        }
    }

    pub(crate) fn cut_back(&mut self, mark: Mark) {
        self.ids.truncate(mark.ids);
        self.entries.truncate(mark.entries);
        self.keys.truncate(mark.keys);
        self.usages.truncate(mark.usages);
        self.models.truncate(mark.models);
        (self.model, self.totals) = (mark.model, mark.totals);
        self.growth.truncate(mark.growth);
        self.controls.truncate(mark.controls);
        self.issues.kept.truncate(mark.issues);
        (self.issues.errors_beyond, self.issues.notes_beyond) = (mark.errors_beyond, mark.notes_beyond);
        self.facts = mark.facts;
    }

    pub(crate) fn report(&mut self, place: Place, kind: IssueKind, detail: impl Into<String>) {
        self.report_region(place, 0, kind, detail);
    }

    /// Reports bytes that belong to no record.
    pub(crate) fn report_region(&mut self, place: Place, length: u64, kind: IssueKind, detail: impl Into<String>) {
        let file = self.file_names.get(usize::from(place.file)).cloned().flatten();
        self.issues.push(Issue { length, ..Issue::at(place, file, kind, detail.into()) });
    }

    /// Takes in one event of the value at `value`; `record` is where the record itself stands, when the event is one.
    pub(crate) fn take(&mut self, event: Event<'_>, value: Place, record: HashedSpan, now: Timestamp) {
        let entry = self.entries.len().saturating_sub(1) as u32;
        match event {
            Event::Record(link) => self.record(link, record, now),
            Event::Key(key) => {
                let (role, id) = match key {
                    Key::Group(id) => (KeyRole::Group, id),
                    Key::Call(id) => (KeyRole::Call, id),
                    Key::Result(id) => (KeyRole::Result, id),
                    Key::PreliminaryResult(id) => (KeyRole::Interim, id),
                };
                self.keys.push(KeyEntry { entry, role, hash: xxh3_64(id.as_bytes()) });
            }
            Event::Usage { request, usage, model, cost } => {
                let request = request.map(|name| xxh3_64(name.as_bytes()));
                let model = model.map(|model| self.models.intern(&model)).or(self.model);
                self.usages.push(UsageEntry { entry, request, usage, model, cost });
            }
            Event::CostSoFar { model, cost } => self.facts.spend(model, cost),
            Event::TotalUsage { total, last } => {
                let usage = self.totals.take(total, last);
                self.growth.push(UsageEntry { entry, request: None, usage, model: self.model, cost: None });
            }
            Event::AnswerItem => self.flag_last(Flags::ITEM),
            Event::Reaction => self.flag_last(Flags::REACTION),
            Event::StateOnly => self.flag_last(Flags::STATE),
            Event::Peer(other) => {
                if let Err(other) = self.facts.meet(other) {
                    let known = self.facts.with.as_deref().unwrap_or_default();
                    let (other, known) = (quoted(&other), quoted(known));
                    let detail =
                        format!("the record is of a session with {other}, the file began with {known}; both are kept");
                    self.report(value, IssueKind::MixedSession, detail);
                }
            }
            Event::WholeMessage => self.flag_last(Flags::MESSAGE),
            Event::Rejected(why) => {
                let of_record = self.entries.last().map(|entry| entry.place).filter(|place| value.holds(*place));
                self.report(of_record.unwrap_or(value), IssueKind::InvalidMessage, why);
            }
            // A further header came with records that were copied from another session: it tells of that one.
            Event::Facts(about) if self.is_copied_header(&about) => {}
            // What lies beside the log has no say about the session.
            Event::Facts(_) | Event::Title { .. } | Event::Summary { .. } if value.file > 0 => {}
            Event::Facts(about) => {
                let is_beside = |entry: &Entry| entry.kind == Kind::Attachment && entry.flags.has(Flags::SIDE);
                if let Some(model) = &about.model
                    && self.entries.last().is_some_and(is_beside)
                {
                    self.model = Some(self.models.intern(model));
                }
                if let Err(other) = self.facts.learn(about) {
                    let known = self.facts.session.as_deref().unwrap_or_default();
                    let (other, known) = (quoted(&other), quoted(known));
                    let detail = format!("the record says session {other}, the file began with {known}; both are kept");
                    self.report(value, IssueKind::MixedSession, detail);
                }
            }
            Event::Title { text, source } => self.facts.entitle(Title { text: text.into_owned(), source }),
            Event::Summary { text, of } => self.facts.sum_up(of, text),
            Event::Head(id) => self.control(value, |ids| ControlKind::Leaf(ids.intern(&id))),
            Event::RewindTo(id) => self.control(value, |ids| ControlKind::Rewound(ids.intern(&id))),
            Event::CutFrom(id) => self.control(value, |ids| ControlKind::Cut(ids.intern(&id))),
            Event::CutTurns(turns) => self.control(value, |_| ControlKind::CutTurns(turns)),
            Event::ReplaceAll => self.control(value, |_| ControlKind::ReplaceAll),
            // The driver opens the base itself, and asks the rules.
            Event::ForkBase { .. } | Event::Validate(_) => {}
            Event::UnknownKind(kind) => {
                let detail = format!("records of kind {} are not known; it is kept as it is", quoted(&kind));
                self.report(value, IssueKind::UnknownKind, detail);
                self.facts.count_unknown(&kind);
            }
            Event::NewerFormat(format) => {
                if self.facts.count_unknown(&format!("format {format}")) == 1 {
                    let detail =
                        format!("format {format} is newer than this program; it is read as the newest one known");
                    self.report(value, IssueKind::UnknownKind, detail);
                }
            }
            Event::MissingField(field) => {
                self.report(value, IssueKind::MissingField, format!("the record has no {field}"))
            }
        }
    }

    fn flag_last(&mut self, flag: Flags) {
        if let Some(entry) = self.entries.last_mut() {
            entry.flags = entry.flags.with(flag, true);
        }
    }

    fn is_copied_header(&self, about: &SessionFacts<'_>) -> bool {
        let (Some(own), Some(told)) = (&self.facts.session, &about.session) else { return false };
        let of_header = |entry: &Entry| entry.kind == Kind::Header;
        // A copy begins with its header: one that comes behind records is another session's.
        let at_front = self.entries.len() <= COPIED_HEADERS && self.entries.iter().all(of_header);
        let origins = [&self.facts.parent_session, &self.facts.forked_from];
        let of_parent = origins.iter().any(|origin| origin.as_deref() == Some(&**told));
        *own != **told && self.entries.last().is_some_and(of_header) && (at_front || of_parent)
    }

    fn control(&mut self, value: Place, what: impl FnOnce(&mut Ids) -> ControlKind) {
        let what = what(&mut self.ids);
        self.controls.push(Control { at: self.entries.len() as u32, offset: value.offset, what });
    }

    fn record(&mut self, link: Link<'_>, HashedSpan { place, hash }: HashedSpan, now: Timestamp) {
        let id = match &link.id {
            Some(id) => self.ids.intern(id),
            None => self.ids.intern(&place.name()),
        };
        let parent = match link.parent {
            Parent::Root => ROOT,
            Parent::Previous => PREVIOUS,
            Parent::Id(parent) => self.ids.intern(&parent),
        };
        let at = match time::read(&link.at, now) {
            Told::At(at) => at,
            Told::Absent => NO_TIME,
            Told::Unreadable => {
                self.report(place, IssueKind::BadTime, "its time cannot be read and does not count");
                NO_TIME
            }
            Told::Future => {
                self.report(
                    place,
                    IssueKind::BadTime,
                    "its time lies more than a day in the future and does not count",
                );
                NO_TIME
            }
        };
        let flags = Flags::default()
            .with(Flags::SAID_ASIDE, link.is_sidechain)
            .with(Flags::SIDE, link.is_side)
            .with(Flags::NUMBERED, link.is_numbered)
            .with(Flags::FAILURE, link.is_failure);
        self.entries.push(Entry { place, hash, at, id, parent, kind: link.kind, flags });
    }

    /// Decides which records are aside: in a sub-agent's session, where all of them say so, none is.
    pub(crate) fn settle_sidechains(&mut self, of_a_sub_agent: bool) {
        let content = |entry: &Entry| entry.flags.has(Flags::SAID_ASIDE);
        let is_link = |entry: &&Entry| !entry.flags.has(Flags::SIDE);
        let own = of_a_sub_agent && self.entries.iter().filter(is_link).all(content);
        for entry in &mut self.entries {
            entry.flags = entry.flags.without(Flags::SIDECHAIN).with(Flags::SIDECHAIN, !own && content(entry));
        }
    }
}
