//! The base of a fork: the session that it begins in. Its current branch is put before the fork's own records.
//!
//! A base that is missing or ends too early is a gap.

use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use rayon::prelude::*;

use crate::dialect::{Dialect, Event};
use crate::model::place::Place;
use crate::session::read::files::{OpenFile, head_of};
use crate::session::read::open::{ReadOptions, open_within};
use crate::session::read::sanitize;
use crate::session::read::source::Source;
use crate::session::tree::ids::IdIndex;
use crate::session::tree::skeleton::{BaseGap, Control, ControlKind, Entry, Flags, KeyEntry, PREVIOUS, ROOT, Skeleton};
use crate::session::{RecordRef, Session};

/// The base of a session. Only a whole line names it, not a pending one.
pub(crate) enum Base {
    Unknown,
    Named(BaseRef),
    Followed,
}

/// Where a session begins in another one.
#[derive(Clone)]
pub(crate) struct BaseRef {
    pub(crate) session: String,
    pub(crate) until: Option<String>,
    pub(crate) last: Option<String>,
}

/// How long a chain of bases may be: a longer one ends in a gap.
const BASES_FOLLOWED: usize = 64;

/// Puts the records of the base before the session's own.
pub(crate) fn inherit(session: &mut Session, origin: &BaseRef, reading: &ReadOptions<'_>, within: &mut Vec<String>) {
    let base = origin.session.as_str();
    within.push(session.skeleton.facts.session.clone().unwrap_or_else(|| session.source.name()));
    // A further file names its session too, and means the first file, which is gone.
    let is_segment = session.source.dialect.segment_from_path(&session.source.path).is_some();
    let is_cycle = session.source.has_file_named(base) || (!is_segment && within.iter().any(|id| id == base));
    let followed = within.len() < BASES_FOLLOWED && !is_cycle && !within.iter().any(|id| id == base);
    let opened = followed.then(|| (reading.find)(base)).flatten().map(|source| open_within(&source, reading, within));
    within.pop();
    let Some(Ok(mut base_session)) = opened else {
        let why = if is_cycle { BaseGap::Cycle } else { BaseGap::NoSession };
        session.skeleton.miss(base, why, 0);
        return;
    };
    let dialect = base_session.source.dialect;
    // The base may be the last of several files. What was undone at the end of an earlier one has the same numbers.
    let earlier = 1..=base_session.source.earlier.len();
    let kept = last_entries(&base_session);
    let is_undone = |at: usize, entry: &Entry| {
        earlier.contains(&usize::from(entry.place.file)) && kept.get(&entry.place.file).is_none_or(|last| at > *last)
    };
    let reaching = |mark: &Option<String>| {
        let mark = mark.as_deref()?;
        let is_reached = |entry: &Entry| dialect.is_at_or_after(base_session.skeleton.ids.get(entry.id), mark);
        let mut entries = base_session.skeleton.entries.iter().enumerate();
        entries.find(|(at, entry)| !is_undone(*at, entry) && is_reached(entry)).map(|(at, _)| at)
    };
    let (until, incomplete) = (reaching(&origin.until), origin.last.is_some() && reaching(&origin.last).is_none());
    if let Some(until) = until {
        // As it was at the fork: later records, a step back too, are not part of this session.
        base_session.skeleton.remove_from(until);
        base_session.derive();
    }
    let front = front(&base_session, session.files.0.len() as u16);
    let inherited = front.entries.len();
    session.skeleton.prepend(front);
    if let Some(last) = origin.last.as_ref().filter(|_| incomplete) {
        session.skeleton.miss(last, BaseGap::EndsEarly, inherited);
    } else if let Some((missing, why)) = base_session.skeleton.missing_base().filter(|_| inherited == 0) {
        session.skeleton.miss(missing, why, 0);
    }
    session.files.0.append(&mut base_session.files.0);
}

/// The last entry of each file that is part of the current branch.
fn last_entries(session: &Session) -> HashMap<u16, usize> {
    let records = session.head().map(|head| session.branch(head).records).unwrap_or_default();
    let mut last = HashMap::new();
    for at in records
        .iter()
        .flat_map(|record| session.derived.tree.entries_of(record.node))
        .map(|at| *at as usize)
    {
        let of_file = last.entry(session.skeleton.entries[at].place.file).or_insert(at);
        *of_file = at.max(*of_file);
    }
    last
}

/// The current branch of a session as the beginning of another one, which has `first_file` files of its own.
fn front(base: &Session, first_file: u16) -> Skeleton {
    let mut front = Skeleton::default();
    let file_name = |file: &OpenFile| file.path.file_name().map(|name| name.to_string_lossy().into_owned());
    front.file_names = base.files.0.iter().map(file_name).collect();
    let branch = base.head().map(|head| base.branch(head).records).unwrap_or_default();
    let (mut parent, mut surroundings) = (ROOT, None);
    for record in branch {
        // Context beside the conversation names the model of the answers that follow.
        if let Some(beside) = record.surroundings().filter(|beside| surroundings != Some(beside.node)) {
            surroundings = Some(beside.node);
            front.inherit_record(beside, PREVIOUS, first_file);
        }
        // A gap in the base is a gap in this session too.
        if let (Some(missing), Some(why)) = (record.missing_parent(), base.derived.tree.base_gaps.get(&record.node)) {
            let what = ControlKind::MissingBase(front.ids.intern(missing), *why);
            front.controls.push(Control { at: front.entries.len() as u32, offset: 0, what });
            parent = PREVIOUS;
        }
        parent = front.inherit_record(record, parent, first_file);
    }
    front
}

impl Skeleton {
    /// Copies another session's record and returns its id.
    fn inherit_record(&mut self, record: RecordRef<'_>, parent: u32, first_file: u16) -> IdIndex {
        let Session { skeleton, derived, .. } = record.session;
        let place = record.place();
        let moved = |place: Place| Place { file: place.file + first_file, ..place };
        let nameless = record.id() == place.name();
        let id = if nameless { self.ids.intern(&moved(place).name()) } else { self.ids.intern(&record.id()) };
        for &at in derived.tree.entries_of(record.node) {
            let entry = skeleton.entries[at as usize];
            let first_key = skeleton.keys.partition_point(|key| key.entry < at);
            let keys = skeleton.keys[first_key..].iter().take_while(|key| key.entry == at);
            self.keys.extend(keys.map(|key| KeyEntry { entry: self.entries.len() as u32, ..*key }));
            let flags = entry.flags.with(Flags::INHERITED, true);
            self.entries.push(Entry { place: moved(entry.place), id, parent, flags, ..entry });
        }
        id
    }

    /// Notes that something is missing after the first `inherited` records.
    fn miss(&mut self, what: &str, why: BaseGap, inherited: usize) {
        let what = ControlKind::MissingBase(self.ids.intern(what), why);
        let place = self.controls.partition_point(|control| (control.at as usize) < inherited);
        self.controls.insert(place, Control { at: inherited as u32, offset: 0, what });
    }

    /// The missing base of this session.
    fn missing_base(&self) -> Option<(&str, BaseGap)> {
        let ControlKind::MissingBase(id, why) = self.controls.first()?.what else { return None };
        Some((self.ids.get(id), why))
    }

    /// Removes this entry and all after it.
    fn remove_from(&mut self, end: usize) {
        let Some(first) = self.entries.get(end).map(|entry| entry.place.offset) else { return };
        self.entries.truncate(end);
        self.keys.truncate(self.keys.partition_point(|key| (key.entry as usize) < end));
        self.usages.retain(|usage| (usage.entry as usize) < end);
        self.growth.retain(|usage| (usage.entry as usize) < end);
        // Controls in the removed record's own value go with it.
        let before = |control: &Control| {
            matches!(control.what, ControlKind::MissingBase(..))
                || (control.at as usize) < end
                || control.offset < first
        };
        self.controls.retain(|control| control.at as usize <= end && before(control));
    }

    /// Puts another session's records before this one's.
    fn prepend(&mut self, mut front: Skeleton) {
        let shift = front.entries.len() as u32;
        for entry in &mut front.entries {
            entry.id = self.ids.intern(front.ids.get(entry.id));
            if entry.parent != ROOT && entry.parent != PREVIOUS {
                entry.parent = self.ids.intern(front.ids.get(entry.parent));
            }
        }
        self.keys.iter_mut().for_each(|key| key.entry += shift);
        self.usages.iter_mut().chain(&mut self.growth).for_each(|usage| usage.entry += shift);
        for control in &mut self.controls {
            control.at += shift;
            if let ControlKind::CutEntry(entry) = &mut control.what {
                *entry += shift;
            }
        }
        // A front has no other controls.
        for control in &mut front.controls {
            if let ControlKind::MissingBase(id, _) = &mut control.what {
                *id = self.ids.intern(front.ids.get(*id));
            }
        }
        self.controls.splice(0..0, front.controls);
        front.entries.append(&mut self.entries);
        front.keys.append(&mut self.keys);
        (self.entries, self.keys) = (front.entries, front.keys);
        self.file_names.append(&mut front.file_names);
    }
}

/// How much of a file is searched for its base. Codex states it in the first line, which also has its instructions, some 20 KB.
const STATED_WITHIN_BYTES: u64 = 256 * 1024;

impl Session {
    /// The sessions of the same store that begin in this one: without it, they lose their beginning.
    pub fn dependents(&self) -> Vec<Source> {
        let files: Vec<&PathBuf> = self.source.earlier.iter().chain([&self.source.path]).collect();
        let segments = files.iter().filter_map(|path| self.dialect().segment_from_path(path));
        let names: Vec<String> = segments.chain([self.id().0, self.source.name()]).collect();
        let begins_here = |other: &Source| {
            let first = other.earlier.first().unwrap_or(&other.path);
            first_base(other.dialect, first).is_some_and(|base| names.contains(&base))
        };
        let layouts = self.source.store().map(|store| self.dialect().layouts_in(&store)).unwrap_or_default();
        let layouts: Vec<_> = layouts.into_iter().map(|layout| (self.dialect(), layout)).collect();
        let others: Vec<Source> = Source::walk_all(&layouts).into_iter().filter_map(Result::ok).collect();
        others.into_par_iter().filter(|other| !files.contains(&&other.path) && begins_here(other)).collect()
    }
}

/// The session that a file says it begins in.
pub(crate) fn first_base(dialect: &dyn Dialect, path: &Path) -> Option<String> {
    let head = head_of(path, STATED_WITHIN_BYTES).ok()?;
    let first = head.split(|byte| *byte == b'\n').next()?;
    let mut base = None;
    let mut take = |event: Event<'_>| {
        if let Event::ForkBase { session, .. } = event {
            base = Some(session.into_owned());
        }
    };
    dialect.link(&sanitize::whole(first), &mut take).ok()?;
    base
}
