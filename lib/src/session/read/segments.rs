//! A session in several files: Codex begins a further file when a person goes back in the conversation.
//!
//! ```text
//! rollout-<time>-<thread>.jsonl              q1 a1 q2 a2
//! rollout-<time>-<thread>_<segment>.jsonl    header: continues <thread> before q2    q3 a3
//! session                                    q1 a1 q3 a3, and the branch q1 a1 q2 a2
//! ```
//!
//! The newest file is the session's first, the one that grows; the earlier ones are further files of it. Each file's header
//! names the file that it continues, which decides their order; one that names none replaces the conversation, unless the
//! numbers of its records say that its header is damaged.

use std::path::{Path, PathBuf};

use hashbrown::{HashMap, HashSet};

use crate::dialect::Dialect;
use crate::dialect::writer::is_uuid;
use crate::model::issue::IssueKind;
use crate::session::Session;
use crate::session::read::base::{Base, BaseRef, first_base};
use crate::session::read::files::{Files, OpenFile, have_same_content};
use crate::session::read::source::{Source, UnreadableFile, root_of};
use crate::session::tree::ids::IdIndex;
use crate::session::tree::is_link;
use crate::session::tree::skeleton::{BaseGap, Control, ControlKind};

/// Joins the files of one session into one source each. The files of a session are in one store, in whichever of its folders.
pub(crate) fn join(sources: Vec<Source>) -> Vec<Source> {
    let is_segment = |source: &Source| source.dialect.segment_from_path(&source.path).is_some();
    let of_session = |source: &Source| (source.dialect.name(), source.name());
    let segmented: HashSet<_> = sources.iter().filter(|source| is_segment(source)).map(of_session).collect();
    if segmented.is_empty() {
        return sources;
    }
    let mut sessions: HashMap<_, Vec<usize>> = HashMap::new();
    for (at, source) in sources.iter().enumerate().filter(|(_, source)| segmented.contains(&of_session(source))) {
        sessions.entry((of_session(source), source.store())).or_default().push(at);
    }
    let mut further: HashMap<usize, [Vec<PathBuf>; 2]> = HashMap::new();
    let mut is_joined = vec![false; sources.len()];
    for files in sessions.into_values().filter(|files| files.iter().any(|at| is_segment(&sources[*at]))) {
        let (files, copies) = without_copies(files, &sources);
        let mut files = in_order(files, &sources);
        let Some(newest) = files.pop() else { continue };
        files.iter().chain(&copies).for_each(|at| is_joined[*at] = true);
        let paths = |files: Vec<usize>| files.into_iter().map(|at| sources[at].path.clone()).collect();
        further.insert(newest, [paths(files), paths(copies)]);
    }
    let kept = sources.into_iter().enumerate().filter(|(at, _)| !is_joined[*at]);
    kept.map(|(at, source)| {
        let [earlier, copies] = further.remove(&at).unwrap_or_default();
        Source { earlier, copies, ..source }
    })
    .collect()
}

/// The files of one session, each name once, and the others: the first folder of the dialect's layouts has precedence.
fn without_copies(mut files: Vec<usize>, sources: &[Source]) -> (Vec<usize>, Vec<usize>) {
    files.sort_by_cached_key(|at| {
        let (dialect, path) = (sources[*at].dialect, &sources[*at].path);
        let rank = dialect.layouts_in(Path::new("")).iter().position(|layout| root_of(layout, path).is_some());
        (rank.unwrap_or(usize::MAX), path.clone())
    });
    let mut names = HashSet::new();
    files.into_iter().partition(|at| names.insert(sources[*at].path.file_name()))
}

/// The files of one session, each after the one that it continues; of several, the older one first.
///
/// Names begin with a time, but a clock can be set back, and a file can be renamed. Of a circle, the oldest is the first.
fn in_order(mut files: Vec<usize>, sources: &[Source]) -> Vec<usize> {
    let segment = |at: &usize| sources[*at].dialect.segment_from_path(&sources[*at].path);
    let are_ordered = files.iter().filter_map(segment).all(|id| is_ordered_by_time(&id));
    let age = |at: &usize| (segment(at).filter(|_| are_ordered), sources[*at].path.file_name().map(ToOwned::to_owned));
    files.sort_by_cached_key(|at| (segment(at).is_some(), age(at)));
    let base = |at: &usize| first_base(sources[*at].dialect, &sources[*at].path);
    let bases: HashMap<usize, Option<String>> = files.iter().map(|at| (*at, base(at))).collect();
    let mut ordered = Vec::with_capacity(files.len());
    while !files.is_empty() {
        let is_named =
            |at: &usize, name: &str| segment_name(sources[*at].dialect, &sources[*at].path).as_deref() == Some(name);
        let waits =
            |at: &usize| bases[at].as_deref().is_some_and(|base| files.iter().any(|other| is_named(other, base)));
        let next = files.iter().position(|at| !waits(at)).unwrap_or(0);
        ordered.push(files.remove(next));
    }
    ordered
}

/// Whether ids like this one have the order of their times: UUIDs of version 7.
fn is_ordered_by_time(id: &str) -> bool {
    is_uuid(id) && id.as_bytes()[14] == b'7'
}

impl Source {
    /// The same source with the earlier files of its session, for a file that was named by its path.
    pub(crate) fn with_earlier_files(self) -> Source {
        if self.dialect.segment_from_path(&self.path).is_none() {
            return self;
        }
        let found = self.neighbours().into_iter().find_map(|session| session.up_to(&self.path));
        let Some(Source { earlier, mut copies, .. }) = found else { return self };
        copies.retain(|copy| *copy != self.path);
        Source { earlier, copies, ..self }
    }

    /// The session, or its state in an earlier file, by the name that other files use for it.
    pub fn named(&self, name: &str) -> Option<Source> {
        if self.earlier.is_empty() {
            return (self.name() == name).then(|| self.clone());
        }
        let is_named = |path: &&PathBuf| segment_name(self.dialect, path).as_deref() == Some(name);
        let path = self.earlier.iter().chain([&self.path]).find(is_named)?;
        self.up_to(path)
    }

    /// Whether other files call one of its files by this name.
    pub(crate) fn has_file_named(&self, name: &str) -> bool {
        let files = self.earlier.iter().chain([&self.path]);
        files.into_iter().any(|path| segment_name(self.dialect, path).as_deref() == Some(name))
    }

    /// Whether a file can be an earlier one of this session, by its path: it need not exist.
    pub(crate) fn can_have_earlier(&self, path: &Path) -> bool {
        let other = Source { path: path.to_path_buf(), ..self.clone() };
        let is_of_session = self.dialect.session_id_from_path(path).is_some_and(|session| session == self.name());
        // Without a store, the files of a session are in one folder.
        let is_near = other.store() == self.store() && (self.store().is_some() || path.parent() == self.path.parent());
        self.dialect.segment_from_path(&self.path).is_some() && is_of_session && is_near
    }

    /// The session as it was in one of its files.
    fn up_to(&self, path: &Path) -> Option<Source> {
        let is_copy = self.copies.iter().any(|copy| copy == path);
        let is_it = |own: &PathBuf| own == path || (is_copy && own.file_name() == path.file_name());
        if is_it(&self.path) {
            return Some(self.clone());
        }
        let at = self.earlier.iter().position(is_it)?;
        Some(Source { path: path.to_path_buf(), earlier: self.earlier[..at].to_vec(), ..self.clone() })
    }
}

/// What other files call this one: its segment, or the session if it is the first.
fn segment_name(dialect: &dyn Dialect, path: &Path) -> Option<String> {
    let stem = || Some(path.file_stem()?.to_string_lossy().into_owned());
    dialect.segment_from_path(path).or_else(|| dialect.session_id_from_path(path)).or_else(stem)
}

/// A file of a session that continues an earlier one: where its records begin, and its base.
pub(crate) struct Segment {
    pub(crate) file: u16,
    pub(crate) start: usize,
    pub(crate) base: Base,
}

/// Where a further file was placed.
struct Placement {
    /// Its base, if that was found.
    base: Option<BaseRef>,
    gap: Option<(IdIndex, BaseGap)>,
}

/// The further files that were placed so far.
type Placements = HashMap<u16, Placement>;

/// What a file has before the place at which another one continues it.
#[derive(Default)]
struct Part {
    file: Option<u16>,
    /// The first entry that is not part of it, if the file has one.
    until: Option<usize>,
    /// The position after the file's last entry, if it was read.
    end: Option<usize>,
    is_empty: bool,
    has_records: bool,
    reaches_last: bool,
}

impl Session {
    /// Reports the copies of its files that have other content.
    pub(crate) fn report_copies(&mut self) {
        let Source { path, earlier, copies, .. } = self.source.clone();
        for copy in copies {
            let own = earlier.iter().chain([&path]).find(|own| own.file_name() == copy.file_name());
            let Some(own) = own else { continue };
            match have_same_content(own, &copy) {
                Ok(true) => {}
                Ok(false) => {
                    let what = format!("{} has other content than {}", copy.display(), own.display());
                    self.skeleton.report_beside(&copy, IssueKind::OtherCopy, format!("{what}; it is ignored"));
                }
                Err(error) => self.report_unreadable(&UnreadableFile::new(copy, &error)),
            }
        }
    }

    /// Places the records of each file after the record that its header names, which may be one of the session that this one begins
    /// in: `inherited` of its records now stand before all others.
    pub(crate) fn place_segments(&mut self, segments: Vec<Segment>, inherited: usize) {
        let files = std::mem::replace(&mut self.files, Files(Vec::new()));
        let mut placed = Placements::new();
        for segment in segments {
            self.place_segment(Segment { start: segment.start + inherited, ..segment }, &mut placed, &files);
        }
        self.files = files;
    }

    fn place_segment(&mut self, Segment { file, start, base }: Segment, placed: &mut Placements, files: &Files) {
        let (origin, unstated) = match base {
            Base::Named(origin) if origin.until.is_some() => (Some(origin), None),
            base => {
                let mut origin = self.unstated_base(start, files);
                // Where it goes on may be no number: all of the named file would include what was undone.
                if let Base::Named(named) = base {
                    origin = origin.map(|BaseRef { until, .. }| BaseRef { until, ..named.clone() }).or(Some(named));
                }
                let mark = origin.as_ref().and_then(|origin| origin.until.as_deref());
                let gap = mark.map(|mark| (self.skeleton.ids.intern(mark), BaseGap::Unstated));
                (origin, gap)
            }
        };
        let (cut, gap) = match origin.clone() {
            Some(origin) => self.place_after(origin, (file, start), placed, files),
            None => (ControlKind::ReplaceAll, None),
        };
        let gap = unstated.or(gap);
        let is_found = |(_, why): &(IdIndex, BaseGap)| !matches!(why, BaseGap::NoSession | BaseGap::Cycle);
        placed.insert(file, Placement { base: origin.filter(|_| gap.as_ref().is_none_or(is_found)), gap });
        let what = [cut].into_iter().chain(gap.map(|(what, why)| ControlKind::MissingBase(what, why)));
        let at = self.skeleton.controls.partition_point(|control| (control.at as usize) < start);
        let control = |what| Control { at: start as u32, offset: 0, what };
        self.skeleton.controls.splice(at..at, what.map(control));
    }

    /// The base of a file whose header is damaged: its numbers go on from those of the file before it.
    fn unstated_base(&self, start: usize, files: &Files) -> Option<BaseRef> {
        let first = self.skeleton.entries.get(start)?;
        // Each damaged line before the first record had a number too.
        let lost = u64::from(first.place.line.saturating_sub(1));
        let until = self.source.dialect.id_before(self.skeleton.ids.get(first.id), lost)?;
        let before = files.0.get(usize::from(first.place.file) + 1)?;
        let session = segment_name(self.source.dialect, &before.path)?;
        Some(BaseRef { session, until: Some(until), last: None })
    }

    /// What leaves the conversation before a file with this base, and what is missing there.
    fn place_after(
        &mut self,
        mut origin: BaseRef,
        (own, start): (u16, usize),
        placed: &Placements,
        files: &Files,
    ) -> (ControlKind, Option<(IdIndex, BaseGap)>) {
        let mut gap = None;
        loop {
            let part = self.part_before(&origin, start, files);
            let below = part.file.and_then(|file| placed.get(&file));
            gap = gap.or_else(|| self.gap_before(&origin, &part, own, below.is_some()));
            let cut =
                part.until.or(part.end).map_or(ControlKind::ReplaceAll, |entry| ControlKind::CutEntry(entry as u32));
            let Some(below) = below.filter(|_| part.end.is_some() && !part.has_records) else { return (cut, gap) };
            // Nothing of that file is part of the conversation: what it continues itself counts, up to the same place.
            gap = gap.or(below.gap);
            let Some(base) = &below.base else { return (ControlKind::ReplaceAll, gap) };
            let dialect = self.source.dialect;
            let is_earlier =
                |mark: &String| base.until.as_deref().is_none_or(|until| dialect.is_at_or_after(until, mark));
            let until = origin.until.filter(is_earlier).or_else(|| base.until.clone());
            origin = BaseRef { session: base.session.clone(), until, last: None };
        }
    }

    fn part_before(&self, origin: &BaseRef, start: usize, files: &Files) -> Part {
        let dialect = self.source.dialect;
        let is_named = |file: &OpenFile| segment_name(dialect, &file.path).as_deref() == Some(&*origin.session);
        let file = files.0.iter().position(is_named).map(|file| file as u16);
        let mut part = Part { file, is_empty: true, reaches_last: origin.last.is_none(), ..Part::default() };
        let entries = self.skeleton.entries[..start].iter().enumerate();
        for (at, entry) in entries.filter(|(_, entry)| Some(entry.place.file) == file) {
            let is_after = |mark: &String| dialect.is_at_or_after(self.skeleton.ids.get(entry.id), mark);
            part.end = Some(at + 1);
            part.reaches_last |= origin.last.as_ref().is_some_and(is_after);
            if part.until.is_none() && origin.until.as_ref().is_some_and(is_after) {
                part.until = Some(at);
            }
            part.is_empty &= part.until.is_some();
            part.has_records |= part.until.is_none() && is_link(entry);
        }
        part
    }

    /// What is missing before a file with this base.
    fn gap_before(
        &mut self,
        origin: &BaseRef,
        part: &Part,
        own: u16,
        is_further_file: bool,
    ) -> Option<(IdIndex, BaseGap)> {
        let (missing, why) = match (&origin.last, &origin.until) {
            // A file that is there and was not read before this one continues it.
            _ if part.end.is_none() && part.file.is_some_and(|file| file <= own) => (&origin.session, BaseGap::Cycle),
            _ if part.end.is_none() => (&origin.session, BaseGap::NoSession),
            (Some(last), _) if !part.reaches_last => (last, BaseGap::EndsEarly),
            (_, Some(until)) if part.is_empty && is_further_file => (until, BaseGap::BeginsLater),
            _ => return None,
        };
        Some((self.skeleton.ids.intern(missing), why))
    }
}
