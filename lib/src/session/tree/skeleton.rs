//! The skeleton: the links of all records read so far, as one flat list. Bodies stay in the file.
//!
//! It grows, and can be truncated to an earlier length; the tree is derived from it (`tree/mod.rs`). So a growing file and a
//! whole one are read the same way: the unfinished last line is added, the tree derived, and the line removed again.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::dialect::{Event, Key, Link, Parent, SessionFacts};
use crate::model::issue::{Issue, IssueKind, Issues, quoted};
use crate::model::lenient::Moment;
use crate::model::place::Place;
use crate::model::record::{Cost, Kind, Title, Usage};
use crate::model::time::{self, Micros};
use crate::session::tree::facts::Facts;
use crate::session::tree::ids::{IdIndex, Ids};

/// A place, and the hash of the bytes there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashedSpan {
    pub(crate) place: Place,
    pub(crate) hash: u64,
}

/// The link of one record, or of one fragment of a record: 56 bytes and its id.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    /// The hash of the value's bytes: detects repeated lines and changed files.
    pub(crate) hash: u64,
    /// `NO_TIME` if the record has no valid time.
    pub(crate) at: Micros,
    pub(crate) id: IdIndex,
    /// An `IdIndex`, `ROOT` or `PREVIOUS`.
    pub(crate) parent: u32,
    pub(crate) kind: Kind,
    pub(crate) flags: Flags,
}

pub(crate) const ROOT: u32 = u32::MAX;
pub(crate) const PREVIOUS: u32 = u32::MAX - 1;
pub(crate) const NO_TIME: Micros = Micros::MIN;

/// Further facts about a record, one bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flags(u16);

impl Flags {
    pub(crate) const SIDECHAIN: Flags = Flags(1);
    pub(crate) const SIDE: Flags = Flags(2);
    pub(crate) const NUMBERED: Flags = Flags(4);
    /// The record belongs to the session that this one begins in.
    pub(crate) const INHERITED: Flags = Flags(8);
    /// It reports a failure of the agent.
    pub(crate) const FAILURE: Flags = Flags(16);
    /// The record is marked as part of a side conversation. In a sub-agent's own session that is the conversation itself.
    pub(crate) const MARKED_SIDECHAIN: Flags = Flags(32);
    /// It is one item of an answer.
    pub(crate) const ITEM: Flags = Flags(64);
    /// It only reacts to another record.
    pub(crate) const REACTION: Flags = Flags(128);
    /// It is a whole message.
    pub(crate) const MESSAGE: Flags = Flags(256);
    /// It only states something about the message before it.
    pub(crate) const STATE: Flags = Flags(512);
    /// It is a copy of a record of the session that this one was forked from.
    pub(crate) const COPIED: Flags = Flags(1024);

    /// A turn begins with it.
    pub(crate) const TURN_START: Flags = Flags(2048);
    /// It is an answer that only a compaction asked for.
    pub(crate) const SUMMARY: Flags = Flags(4096);
    /// A conversation begins anew with it: its parent counts only if it does not descend from it.
    pub(crate) const ANEW: Flags = Flags(8192);

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

/// A key of a record, by hash: checked against the body where it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyEntry {
    pub(crate) entry: u32,
    pub(crate) role: KeyRole,
    pub(crate) hash: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum KeyRole {
    Group,
    Call,
    Result,
    Interim,
    Late,
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

/// An event between two entries, after the first `at` entries.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Control {
    pub(crate) at: u32,
    /// The offset of the value that caused it.
    pub(crate) offset: u64,
    pub(crate) what: ControlKind,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum ControlKind {
    Leaf(IdIndex),
    Rewound(IdIndex),
    Cut(IdIndex),
    /// The position of the first entry that leaves the conversation.
    CutEntry(u32),
    /// The number of prompts, counted from the end.
    CutTurns(u64),
    ReplaceAll,
    /// The parent of the next record, or the base session, is missing.
    MissingBase(IdIndex, BaseGap),
}

/// Why the base of a session is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BaseGap {
    /// There is no such session, or it is unreadable.
    NoSession,
    /// The base begins in this session.
    Cycle,
    /// The base ends before this record.
    EndsEarly,
    /// The file that it continues begins only after this record.
    BeginsLater,
    /// Its damaged header does not say where it begins; its numbers go on from this record.
    Unstated,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Skeleton {
    /// The name of each file in issues; the first file has none.
    pub(crate) file_names: Vec<Option<String>>,
    /// A repeated id is a further fragment of a record.
    pub(crate) joins_fragments: bool,
    /// The last records that name a model, each with that model: further fragments of a record do not change it.
    pub(crate) named_models: Vec<(IdIndex, IdIndex)>,
    pub(crate) ids: Ids,
    pub(crate) entries: Vec<Entry>,
    pub(crate) keys: Vec<KeyEntry>,
    pub(crate) usages: Vec<UsageEntry>,
    /// The names of the models in `usages` and `growth`.
    pub(crate) models: Ids,
    /// The model that the last record beside the conversation names: it answers what follows.
    pub(crate) model: Option<IdIndex>,
    /// The last running total.
    pub(crate) total: Option<Usage>,
    /// What the running totals grew by, beyond the records with the usage of one request.
    pub(crate) growth: Vec<UsageEntry>,
    pub(crate) controls: Vec<Control>,
    pub(crate) issues: Issues,
    pub(crate) facts: Facts,
    /// Every file is a part of the log, not only the first.
    pub(crate) has_segments: bool,
}

/// How many records that name a model are remembered: fragments of one record are close to each other.
const NAMED_MODELS_KEPT: usize = 16;

/// How many entries at the front can be headers of a copied session.
const COPIED_HEADERS: usize = 64;

/// An earlier length of a skeleton.
#[derive(Debug, Clone)]
pub(crate) struct SkeletonMark {
    ids: usize,
    entries: usize,
    keys: usize,
    usages: usize,
    models: usize,
    named_models: Vec<(IdIndex, IdIndex)>,
    model: Option<IdIndex>,
    total: Option<Usage>,
    growth: usize,
    controls: usize,
    issues: usize,
    errors_beyond: u64,
    notes_beyond: u64,
    facts: Facts,
}

impl Skeleton {
    pub(crate) fn mark(&self) -> SkeletonMark {
        SkeletonMark {
            ids: self.ids.len(),
            entries: self.entries.len(),
            keys: self.keys.len(),
            usages: self.usages.len(),
            models: self.models.len(),
            named_models: self.named_models.clone(),
            model: self.model,
            total: self.total,
            growth: self.growth.len(),
            controls: self.controls.len(),
            issues: self.issues.kept.len(),
            errors_beyond: self.issues.errors_beyond,
            notes_beyond: self.issues.notes_beyond,
            facts: self.facts.clone(),
        }
    }

    pub(crate) fn truncate_to(&mut self, mark: SkeletonMark) {
        self.ids.truncate(mark.ids);
        self.entries.truncate(mark.entries);
        self.keys.truncate(mark.keys);
        self.usages.truncate(mark.usages);
        self.models.truncate(mark.models);
        (self.named_models, self.model, self.total) = (mark.named_models, mark.model, mark.total);
        self.growth.truncate(mark.growth);
        self.controls.truncate(mark.controls);
        self.issues.kept.truncate(mark.issues);
        (self.issues.errors_beyond, self.issues.notes_beyond) = (mark.errors_beyond, mark.notes_beyond);
        self.facts = mark.facts;
    }

    pub(crate) fn report(&mut self, place: Place, kind: IssueKind, detail: impl Into<String>) {
        self.report_region(place, 0, kind, detail);
    }

    /// Reports something about a file beside the log.
    pub(crate) fn report_beside(&mut self, path: &Path, kind: IssueKind, detail: impl Into<String>) {
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let nowhere = Place { offset: 0, length: 0, line: 0, file: 0 };
        self.issues.push(Issue::at(nowhere, file, kind, detail.into()));
    }

    /// Reports bytes that belong to no record.
    pub(crate) fn report_region(&mut self, place: Place, length: u64, kind: IssueKind, detail: impl Into<String>) {
        let file = self.file_names.get(usize::from(place.file)).cloned().flatten();
        self.issues.push(Issue { length, ..Issue::at(place, file, kind, detail.into()) });
    }

    /// Applies one event of the value at `value`; `record` is the span of the record itself.
    pub(crate) fn apply(&mut self, event: Event<'_>, value: Place, record: HashedSpan, now: Timestamp) {
        let entry = self.entries.len().saturating_sub(1) as u32;
        match event {
            Event::Record(link) => self.record(link, record, now),
            Event::Key(key) => {
                let (role, id) = match key {
                    Key::Group(id) => (KeyRole::Group, id),
                    Key::Call(id) => (KeyRole::Call, id),
                    Key::Result(id) => (KeyRole::Result, id),
                    Key::PreliminaryResult(id) => (KeyRole::Interim, id),
                    Key::LateResult(id) => (KeyRole::Late, id),
                };
                self.keys.push(KeyEntry { entry, role, hash: xxh3_64(id.as_bytes()) });
            }
            Event::Usage { request, usage, model, cost } => {
                let request = request.map(|name| xxh3_64(name.as_bytes()));
                let model = self.model_of_record().or_else(|| model.map(|model| self.models.intern(&model)));
                let model = model.or(self.model);
                self.usages.push(UsageEntry { entry, request, usage, model, cost });
            }
            Event::CostSoFar { model, cost } => self.facts.set_cost_so_far(model, cost),
            Event::TotalUsage { total, last } => {
                // Its growth, or its latest request if it did not grow or is the first.
                let grown = self.total.replace(total).and_then(|before| total.since(before));
                let usage = grown.or(last).unwrap_or(total);
                // A total that is only repeated is no request.
                if grown.is_none() || usage.total() != Some(0) {
                    self.growth.push(UsageEntry { entry, request: None, usage, model: self.model, cost: None });
                }
            }
            Event::TotalWith(total) => {
                let mut with = self.total.unwrap_or_default();
                self.usages.last().into_iter().for_each(|reported| with.add(reported.usage));
                self.total = Some(total.unwrap_or(with));
            }
            Event::AnswerItem => self.flag_last(Flags::ITEM),
            Event::TurnStart => self.flag_last(Flags::TURN_START),
            Event::Reaction => self.flag_last(Flags::REACTION),
            Event::StateOnly => self.flag_last(Flags::STATE),
            Event::BeginsAnew => self.flag_last(Flags::ANEW),
            Event::Peer(other) => {
                if let Err(other) = self.facts.set_peer(other) {
                    let known = self.facts.with.as_deref().unwrap_or_default();
                    let (other, known) = (quoted(&other), quoted(known));
                    let detail = format!(
                        "the record belongs to a session with {other}, but the file starts with {known}; both are kept"
                    );
                    self.report(value, IssueKind::MixedSession, detail);
                }
            }
            Event::WholeMessage => self.flag_last(Flags::MESSAGE),
            Event::Rejected(why) => {
                let of_record = self.entries.last().map(|entry| entry.place).filter(|place| value.holds(*place));
                self.report(of_record.unwrap_or(value), IssueKind::InvalidMessage, why);
            }
            // A further header came with records copied from another session: it describes that one.
            Event::Facts(about) if self.is_copied_header(&about) => self.facts.add_copied_header(about),
            // Facts in files beside the log do not count.
            Event::Facts(_) | Event::Title { .. } | Event::Summary { .. } if value.file > 0 && !self.has_segments => {}
            Event::Facts(mut about) => {
                let is_copy = |entry: &&Entry| entry.kind != Kind::Header && value.holds(entry.place);
                if about.forked_from.is_some() && self.entries.last().filter(is_copy).is_some() {
                    self.flag_last(Flags::COPIED);
                }
                about.model = about.model.filter(|model| self.names_model(model));
                let is_beside = |entry: &Entry| entry.kind == Kind::Attachment && entry.flags.has(Flags::SIDE);
                if let Some(model) = &about.model
                    && self.entries.last().is_some_and(is_beside)
                {
                    self.model = Some(self.models.intern(model));
                }
                if let Err(other) = self.facts.add(about) {
                    let known = self.facts.session.as_deref().unwrap_or_default();
                    let (other, known) = (quoted(&other), quoted(known));
                    let detail =
                        format!("the record names session {other}, but the file starts with {known}; both are kept");
                    self.report(value, IssueKind::MixedSession, detail);
                }
            }
            Event::Title { text, source } => {
                self.facts.titled_at = self.entries.last().map(|entry| entry.at);
                let end = value.offset + u64::from(value.length);
                self.facts.add_title_line(Title { text: text.into_owned(), source }, end);
            }
            Event::Summary { text, of } => self.facts.add_summary(of, text),
            Event::Head(id) => self.control(value, |ids| ControlKind::Leaf(ids.intern(&id))),
            Event::RewindTo(id) => self.control(value, |ids| ControlKind::Rewound(ids.intern(&id))),
            Event::CutFrom(id) => self.control(value, |ids| ControlKind::Cut(ids.intern(&id))),
            Event::CutTurns(turns) => self.control(value, |_| ControlKind::CutTurns(turns)),
            Event::ReplaceAll => self.control(value, |_| ControlKind::ReplaceAll),
            // The parser handles these.
            Event::ForkBase { .. } | Event::Validate(_) => {}
            Event::UnknownKind(kind) => {
                let detail = format!("unknown kind of record: {}; it is kept as it is", quoted(&kind));
                self.report(value, IssueKind::UnknownKind, detail);
                self.facts.count_unknown(&kind);
            }
            Event::NewerFormat(format) => {
                if self.facts.count_unknown(&format!("format {format}")) == 1 {
                    let detail =
                        format!("format {format} is newer than this program; it is read as the newest known format");
                    self.report(value, IssueKind::UnknownKind, detail);
                }
            }
            Event::MissingField(field) => {
                self.report(value, IssueKind::MissingField, format!("the record has no {field}"))
            }
        }
    }

    /// The model that an earlier fragment of the last record names.
    fn model_of_record(&self) -> Option<IdIndex> {
        let id = self.entries.last().filter(|_| self.joins_fragments)?.id;
        self.named_models.iter().find(|(record, _)| *record == id).map(|(_, model)| *model)
    }

    /// Whether the last record is of the model that it names, and not of that of an earlier fragment.
    fn names_model(&mut self, model: &str) -> bool {
        if let Some(known) = self.model_of_record() {
            return self.models.get(known) == model;
        }
        if let Some(id) =
            self.entries.last().filter(|_| self.joins_fragments && !model.is_empty()).map(|entry| entry.id)
        {
            let full = self.named_models.len() == NAMED_MODELS_KEPT;
            self.named_models.drain(..usize::from(full));
            let model = self.models.intern(model);
            self.named_models.push((id, model));
        }
        true
    }

    fn flag_last(&mut self, flag: Flags) {
        if let Some(entry) = self.entries.last_mut() {
            entry.flags = entry.flags.with(flag, true);
        }
    }

    fn is_copied_header(&self, about: &SessionFacts<'_>) -> bool {
        let (Some(own), Some(session)) = (&self.facts.session, &about.session) else { return false };
        let of_header = |entry: &Entry| entry.kind == Kind::Header;
        // A copy begins with its header: a header after records belongs to another session.
        let at_front = self.entries.len() <= COPIED_HEADERS && self.entries.iter().all(of_header);
        let origins = [&self.facts.parent_session, &self.facts.forked_from];
        let of_parent = origins.iter().any(|origin| origin.as_deref() == Some(&**session));
        *own != **session && self.entries.last().is_some_and(of_header) && (at_front || of_parent)
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
        let at = time::read(&link.at, now).unwrap_or_else(|problem| {
            let written = match &link.at {
                Moment::Text(text) => quoted(text),
                Moment::Millis(millis) => millis.to_string(),
                Moment::Absent => String::new(),
            };
            self.report(place, IssueKind::BadTime, format!("{problem}: {written}"));
            None
        });
        let at = at.unwrap_or(NO_TIME);
        let flags = Flags::default()
            .with(Flags::MARKED_SIDECHAIN, link.is_sidechain)
            .with(Flags::SIDE, link.is_side)
            .with(Flags::NUMBERED, link.is_numbered)
            .with(Flags::FAILURE, link.is_failure);
        self.entries.push(Entry { place, hash, at, id, parent, kind: link.kind, flags });
    }

    /// Sets which records are in a side conversation: none in a sub-agent's session where all of them are marked so.
    pub(crate) fn mark_sidechains(&mut self, of_a_sub_agent: bool) {
        let content = |entry: &Entry| entry.flags.has(Flags::MARKED_SIDECHAIN);
        let is_link = |entry: &&Entry| !entry.flags.has(Flags::SIDE);
        let own = of_a_sub_agent && self.entries.iter().filter(is_link).all(content);
        for entry in &mut self.entries {
            entry.flags = entry.flags.without(Flags::SIDECHAIN).with(Flags::SIDECHAIN, !own && content(entry));
        }
    }
    /// Marks the answers that only a compaction asked for, in a turn without a prompt: they are beside the conversation.
    ///
    /// ```text
    /// turn start   answer   compaction
    ///              SUMMARY
    /// ```
    pub(crate) fn mark_summaries(&mut self) {
        let asked = Flags::SUMMARY.with(Flags::SIDE, true);
        for entry in &mut self.entries {
            if entry.flags.has(Flags::SUMMARY) {
                entry.flags = entry.flags.without(asked);
            }
        }
        let is_answer = |entry: &Entry| entry.flags.has(Flags::ITEM) && !entry.flags.has(Flags::SIDE);
        let mut since_turn_start = None;
        for at in 0..self.entries.len() {
            let Entry { kind, flags, .. } = self.entries[at];
            match kind {
                _ if flags.has(Flags::TURN_START) => since_turn_start = Some(at),
                _ if flags.has(Flags::SIDE) => {}
                Kind::Assistant if flags.has(Flags::ITEM) => {}
                Kind::Compaction => {
                    let turn = since_turn_start.take().unwrap_or(at)..at;
                    let answers = self.entries[turn].iter_mut().filter(|entry| is_answer(entry));
                    answers.for_each(|entry| entry.flags = entry.flags.with(asked, true));
                }
                _ => since_turn_start = None,
            }
        }
    }
}
