//! Random stories: agents and people change a project, and undo and redo are compared with a model that keeps every state.
//!
//! ```text
//! story   turn · turn · user edits · undo · turn · undo to a record · redo …      of one session or two
//! model   for each session, each path: what was there before and after each change of it, in the order of records
//! ```

use std::collections::BTreeSet;

use super::*;
use crate::disk::sim::Random;
use crate::write::undo::{Action, Plan};

/// How many stories are told at a push, and under `cargo xtask torture`: one in ten is Claude Code's.
const STORIES: (u64, u64) = (10_000, 1_000_000);

pub(super) fn stories() -> u64 {
    if std::env::var_os("SCROLLBACK_TORTURE").is_some() { STORIES.1 } else { STORIES.0 }
}

/// Paths that stories use: folders, and a name that is a file and a folder at different times.
const PATHS: [&str; 9] =
    ["a.rs", "b.txt", "bin.dat", "src/c.rs", "src/deep/d.rs", "src/deep/e", "x", "x/y", "日本 語/ü.txt"];
const CONTENTS: [&[u8]; 8] =
    [b"", b"one\n", b"one\ntwo", b"one\r\ntwo\r\n", b"\0\xff\xfe binary", b"three\n", "ümlaut\n".as_bytes(), b"x"];
const MODES: [u32; 4] = [0o644, 0o755, 0o600, 0o444];
const TARGETS: [&str; 3] = ["a.rs", "../outside", "/etc/passwd"];

/// A record of a session, as the model knows it.
struct ModelRecord {
    id: String,
    is_prompt: bool,
    is_restore: bool,
    /// The prompts that were undone before it.
    undone: BTreeSet<usize>,
    /// The prompts of its branch before it.
    branch: Vec<usize>,
}

/// A session, as the model knows it.
struct ModelSession {
    source: Source,
    /// The record that the session continues from.
    head: Option<String>,
    records: Vec<ModelRecord>,
    /// The changes of each path: the place of the record, what was there before, and what after.
    changes: BTreeMap<String, Vec<(usize, Version, Version)>>,
    undone: BTreeSet<usize>,
    branch: Vec<usize>,
    /// Restores that can be taken back: the place of the record, whether the conversation went back, and
    /// whether it went on since.
    active: Vec<(usize, bool, bool)>,
    /// The newest redo of an undo to each place, if no file was changed since.
    redos: BTreeMap<usize, usize>,
    /// The place that each undo went back to.
    targets: BTreeMap<usize, usize>,
}

/// What a plan must say of a path.
struct Expected {
    state: Readiness,
    wanted: Version,
}

impl ModelSession {
    fn add(&mut self, id: String, kind: Kind) -> usize {
        let (undone, branch) = (self.undone.clone(), self.branch.clone());
        let (is_prompt, is_restore) = (kind == Kind::User, kind == Kind::Restore);
        self.records.push(ModelRecord { id, is_prompt, is_restore, undone, branch });
        let place = self.records.len() - 1;
        if is_prompt {
            self.branch.push(place);
        }
        place
    }

    /// The paths that changed from a record on, and what was there before that.
    fn wanted(&self, from: usize) -> BTreeMap<&str, &Version> {
        let first = |changes: &'_ Vec<(usize, Version, Version)>| changes.iter().position(|(place, ..)| *place >= from);
        let all = self.changes.iter().filter_map(|(path, changes)| Some((&**path, &changes[first(changes)?].1)));
        all.collect()
    }

    /// What the plan to restore everything to the state at a place must say.
    fn expected(&self, from: usize, goal: &Goal, now: &Entries) -> BTreeMap<String, Expected> {
        let mut expected = BTreeMap::new();
        for (path, wanted) in self.wanted(from) {
            let changes = &self.changes[path];
            if *goal == Goal::Redo && !changes.iter().any(|(place, ..)| *place == from) {
                continue;
            }
            let mut wanted = wanted.clone();
            let left = changes.last().map(|(_, _, after)| after);
            let mut first = changes.iter().position(|(place, ..)| *place >= from).unwrap_or(0);
            let is_forced = |at: usize| at > 0 && !is_same_content(&changes[at - 1].2, &changes[at].1);
            let mut is_unproven = false;
            if matches!(goal, Goal::After(_)) && self.records[changes[first].0].is_restore && is_forced(first) {
                // What the session left was overwritten by somebody, and then by a restore: a copy is known by chance.
                wanted.clone_from(&changes[first - 1].2);
                let has_copy = |version: &Version| is_same_content(version, &wanted);
                let is_kept = changes.iter().any(|(place, before, after)| {
                    has_copy(before) || (self.records[*place].is_restore && has_copy(after))
                });
                is_unproven = matches!(wanted, Some(Entry::File { .. })) && !is_kept;
            }
            let redo = self.redos.get(&from).filter(|_| *goal == Goal::LastTurn);
            if let Some(at) = changes.iter().position(|(place, ..)| redo == Some(place))
                && !is_same_content(&changes[at].1, &wanted)
            {
                (wanted, first) = (changes[at].1.clone(), at);
            }
            let is_of_others = changes[first..].windows(2).any(|pair| !is_same_content(&pair[0].2, &pair[1].1));
            let disk = now.get(path).filter(|entry| **entry != Entry::Folder).cloned();
            let is_below_file = path.match_indices('/').any(|(at, _)| file_at(now, &path[..at]).is_some());
            let is_in_the_way = is_below_file || now.get(path) == Some(&Entry::Folder);
            let state = match &disk {
                None if is_in_the_way && wanted.is_none() && left != Some(&None) => Readiness::Refused,
                disk if *disk == wanted => Readiness::Ready,
                _ if is_unproven => Readiness::Unproven,
                disk if Some(disk) == left && !is_of_others => Readiness::Ready,
                _ => Readiness::Conflict,
            };
            expected.insert(path.to_owned(), Expected { state, wanted });
        }
        refuse_what_has_no_room(&mut expected, now);
        expected
    }

    /// The place of the prompt that `undo` without a record goes to: if only files go back, a second undo passes over turns that
    /// changed none.
    fn last_turn(&self, scope: Scope) -> Option<usize> {
        let mut left = self.branch.iter().rev().copied().filter(|prompt| !self.undone.contains(prompt));
        let last = left.clone().next();
        if scope == Scope::Conversation || self.branch.last().copied() == last {
            return last;
        }
        let is_prompt = |place: &usize| self.records[*place].is_prompt;
        let has_changes = |prompt: &usize| {
            let end = (prompt + 1..self.records.len()).find(is_prompt).unwrap_or(self.records.len());
            let mut changes = self.changes.values().flatten().map(|(place, ..)| place);
            changes.any(|place| (*prompt..end).contains(place) && !self.records[*place].is_restore)
        };
        left.find(has_changes).or(last)
    }
}

/// A file in the place of a folder waits until everything in that is deleted, and one in a folder until no file is in its place.
fn refuse_what_has_no_room(expected: &mut BTreeMap<String, Expected>, now: &Entries) {
    let files = files_of(now);
    let is_deleted = |file: &Expected| file.state == Readiness::Ready && file.wanted.is_none();
    let gone: BTreeSet<String> = expected
        .iter()
        .filter(|(path, file)| is_deleted(file) && files.contains_key(*path))
        .map(|(path, _)| path.clone())
        .collect();
    for (path, file) in expected {
        let below = format!("{path}/");
        let stays = |inside: &&String| inside.starts_with(&below) && !gone.contains(*inside);
        let is_folder_kept = file.wanted.is_some() && files.keys().any(|inside| stays(&inside));
        let above = path.match_indices('/').map(|(at, _)| &path[..at]).find(|folder| files.contains_key(*folder));
        let is_file_kept = above.is_some_and(|above| file.wanted.is_some() && !gone.contains(above));
        if is_folder_kept || is_file_kept {
            file.state = Readiness::Refused;
        }
    }
}

/// The file or the link at a path.
fn file_at<'n>(now: &'n Entries, path: &str) -> Option<&'n Entry> {
    now.get(path).filter(|entry| **entry != Entry::Folder)
}

/// Whether two versions hold the same, whatever their permissions are.
fn is_same_content(one: &Version, other: &Version) -> bool {
    match (one, other) {
        (Some(Entry::File { content: one, .. }), Some(Entry::File { content: other, .. })) => one == other,
        (one, other) => one == other,
    }
}

struct Story {
    desk: Desk,
    random: Random,
    sessions: Vec<ModelSession>,
    /// What happened, for the message of a failure.
    events: Vec<String>,
    seen: Seen,
}

/// How often something happened, so that a test that tests nothing fails.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    applied: u64,
    redone: u64,
    empty: u64,
    conflicts: u64,
    refused: u64,
    skipped: u64,
    forced: u64,
    moved: u64,
}

impl Story {
    fn new(seed: u64) -> Story {
        let mut random = Random(seed);
        let desk = Desk::new();
        let sessions = 1 + random.below(4) / 3;
        let place = if random.below(2) == 0 { Place::Own } else { Place::Sage };
        let session = |number| ModelSession {
            source: desk.source(&format!("s{number}"), place),
            head: None,
            records: Vec::new(),
            changes: BTreeMap::new(),
            undone: BTreeSet::new(),
            branch: Vec::new(),
            active: Vec::new(),
            redos: BTreeMap::new(),
            targets: BTreeMap::new(),
        };
        let sessions = (0..sessions).map(session).collect();
        let mut story = Story { desk, random, sessions, events: vec![format!("seed {seed}")], seen: Seen::default() };
        for _ in 0..story.random.below(5) {
            story.user_edits();
        }
        story
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len() as u64) as usize].clone()
    }

    fn version(&mut self) -> Version {
        match self.random.below(8) {
            0 | 1 => None,
            2 => Some(Entry::Link(self.pick(&TARGETS).to_owned())),
            _ => {
                let (content, mode) = (self.pick(&CONTENTS), self.pick(&MODES));
                Some(Entry::file(content, mode))
            }
        }
    }

    /// A change that the file system can make now: what is at some paths then.
    fn some_change(&mut self) -> Vec<(String, Version)> {
        let now = self.desk.tree.entries();
        let files = files_of(&now);
        if self.random.below(6) == 0 && !files.is_empty() {
            return self.renamed(&files);
        }
        let path = self.pick(&PATHS).to_owned();
        let version = self.version();
        let below: Vec<String> = files.keys().filter(|file| file.starts_with(&format!("{path}/"))).cloned().collect();
        let above = files.keys().find(|file| path.starts_with(&format!("{file}/"))).cloned();
        if version.is_none() {
            return files.contains_key(&path).then_some((path, None)).into_iter().collect();
        }
        // A folder becomes a file, or a file a folder.
        let mut changes: Vec<(String, Version)> = below.into_iter().chain(above).map(|path| (path, None)).collect();
        if files.get(&path) != version.as_ref() {
            changes.push((path, version));
        }
        changes
    }

    /// A file or a folder gets another name.
    fn renamed(&mut self, files: &Entries) -> Vec<(String, Version)> {
        let from = self.pick(&files.keys().cloned().collect::<Vec<_>>());
        let folder = from.rsplit_once('/').map(|(folder, _)| format!("{folder}/"));
        let (prefix, to) = match folder {
            Some(folder) if self.random.below(2) == 0 => (folder, "moved/".to_owned()),
            _ => (from, "renamed".to_owned()),
        };
        if files.keys().any(|file| file.starts_with(&to) || to.starts_with(&format!("{file}/"))) {
            return Vec::new();
        }
        let inside = files.iter().filter(|(path, _)| path.starts_with(&prefix));
        inside
            .flat_map(|(path, entry)| {
                let new = format!("{to}{}", &path[prefix.len()..]);
                [(path.clone(), None), (new, Some(entry.clone()))]
            })
            .collect()
    }

    fn user_edits(&mut self) {
        let mut changes = self.some_change();
        // What a session changed is edited more often than anything else.
        let touched: Vec<String> = self.sessions.iter().flat_map(|session| session.changes.keys().cloned()).collect();
        if !touched.is_empty() && self.random.below(2) == 0 {
            let (path, version) = (self.pick(&touched), self.version());
            let now = self.desk.tree.entries();
            changes =
                if matches!(now.get(&path), Some(Entry::File { .. })) { vec![(path, version)] } else { Vec::new() };
        }
        for (path, version) in changes {
            self.events.push(format!("the user: {path} = {version:?}"));
            self.desk.put(&path, &version);
        }
    }

    fn say(&mut self, who: usize, kind: &str) -> String {
        let session = &mut self.sessions[who];
        let id = self.desk.say(&session.source, kind, session.head.as_deref());
        session.head = Some(id.clone());
        id
    }

    fn turn(&mut self, who: usize) {
        let prompt = self.say(who, "user");
        self.events.push(format!("s{who} {prompt}"));
        self.sessions[who].add(prompt, Kind::User);
        for _ in 0..1 + self.random.below(2) {
            let answer = self.say(who, "assistant");
            let place = self.sessions[who].add(answer.clone(), Kind::Assistant);
            for number in 0..self.random.below(3) {
                self.answer(who, place, &answer, number > 0);
            }
        }
    }

    fn answer(&mut self, who: usize, place: usize, answer: &str, is_update: bool) {
        let source = self.sessions[who].source.clone();
        let changes: BTreeMap<String, Version> = self.some_change().into_iter().collect();
        if changes.is_empty() {
            return;
        }
        let now = self.desk.tree.entries();
        for (path, after) in &changes {
            self.events.push(format!("s{who} {answer}: {path} = {after:?}"));
            let before = now.get(path).filter(|entry| **entry != Entry::Folder).cloned();
            let known = self.sessions[who].changes.entry(path.clone()).or_default();
            match known.last_mut().filter(|(at, ..)| *at == place) {
                Some(same_message) => same_message.2.clone_from(after),
                None => known.push((place, before, after.clone())),
            }
        }
        self.sessions[who].active.clear();
        self.sessions[who].redos.clear();
        // What goes away makes room first.
        let (gone, come): (BTreeMap<_, _>, BTreeMap<_, _>) =
            changes.into_iter().partition(|(_, after)| after.is_none());
        for (changes, is_update) in [(&gone, is_update), (&come, is_update || !gone.is_empty())] {
            if !changes.is_empty() {
                self.desk.change(&source, answer, changes, is_update);
            }
        }
    }

    fn undo(&mut self, who: usize) {
        // Another agent's conversation does not move with its files.
        let moves = self.sessions[who].source.store() == Some(self.desk.store()) && self.random.below(3) == 0;
        let scope = if moves { Scope::Conversation } else { Scope::FilesOnly };
        let blocked = self.pick(&[Blocked::Stop, Blocked::Stop, Blocked::Skip, Blocked::Force]);
        let session = &self.sessions[who];
        let said: Vec<usize> = (0..session.records.len()).filter(|place| !session.records[*place].is_restore).collect();
        let some_record = said[self.random.below(said.len() as u64) as usize];
        // The place of the first record whose changes go away.
        let (goal, from) = match self.random.below(8) {
            3..=5 if !session.active.is_empty() || some_record == 0 => {
                let newest = session.active.last().filter(|(_, _, is_overtaken)| !is_overtaken);
                (Goal::Redo, newest.map(|(place, ..)| *place))
            }
            0..=5 => (Goal::LastTurn, session.last_turn(scope)),
            6 => (Goal::Before(session.records[some_record].id.clone()), Some(some_record)),
            _ => (Goal::After(session.records[some_record].id.clone()), Some(some_record + 1)),
        };
        self.events.push(format!("s{who}: {goal:?} {scope:?} {blocked:?}"));
        let now = self.desk.tree.entries();
        let expected = from.map(|from| session.expected(from, &goal, &now)).unwrap_or_default();
        let source = session.source.clone();
        let log = fs::read(&source.path).unwrap();
        let (plan, applied) = self.desk.undo(&source, |undo| {
            assert_eq!(undo.recover().unwrap(), None);
            let plan = undo.plan(&goal, scope).unwrap();
            let applied = (!plan.is_empty()).then(|| undo.apply(&plan, blocked));
            (plan, applied)
        });
        self.check_plan(&plan, &expected, &now);
        let is_applied = |state: Readiness| match state {
            Readiness::Ready => true,
            Readiness::Conflict => blocked == Blocked::Force,
            _ => false,
        };
        let is_change =
            |(path, file): (&String, &Expected)| is_applied(file.state) && file.wanted.as_ref() != file_at(&now, path);
        let has_something = plan.head.is_some() || expected.iter().any(is_change);
        let is_ready =
            has_something && (blocked == Blocked::Skip || expected.values().all(|file| is_applied(file.state)));
        match applied {
            None => {
                self.seen.empty += 1;
                assert!(
                    expected.iter().all(|(path, file)| file.wanted.as_ref() == file_at(&now, path)),
                    "{}",
                    self.log()
                );
                assert_eq!((self.desk.tree.entries(), fs::read(&source.path).unwrap()), (now, log), "{}", self.log());
            }
            Some(Err(error)) => {
                assert!(!is_ready, "{error}: {}", self.log());
                self.seen.conflicts += 1;
                self.seen.refused += u64::from(expected.values().any(|file| file.state == Readiness::Refused));
                assert_eq!((self.desk.tree.entries(), fs::read(&source.path).unwrap()), (now, log), "{}", self.log());
            }
            Some(Ok(restore)) => {
                assert!(is_ready, "{}", self.log());
                let changed: Vec<(String, Version)> = expected
                    .iter()
                    .filter(|(path, file)| is_applied(file.state) && file.wanted.as_ref() != file_at(&now, path))
                    .map(|(path, file)| (path.clone(), file.wanted.clone()))
                    .collect();
                assert_eq!(restore.files, changed.len(), "{}", self.log());
                let has_conflicts = expected.values().any(|file| file.state == Readiness::Conflict);
                self.seen.applied += 1;
                self.seen.skipped += u64::from(blocked == Blocked::Skip && has_conflicts);
                self.seen.forced += u64::from(blocked == Blocked::Force && has_conflicts);
                self.check_files(&now, &changed);
                self.note(who, &plan, &goal, from.unwrap_or(0), restore.restore.to_string(), &now, changed);
            }
        }
    }

    fn check_plan(&self, plan: &Plan, expected: &BTreeMap<String, Expected>, now: &Entries) {
        let planned: BTreeMap<&str, (Action, Readiness)> =
            plan.files.iter().map(|file| (file.path.as_str(), (file.action, file.state))).collect();
        assert_eq!(planned.keys().copied().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{}", self.log());
        for (path, file) in expected {
            let disk = file_at(now, path);
            let action = match (disk, &file.wanted) {
                _ if matches!(file.state, Readiness::Refused | Readiness::Unproven) => planned[path.as_str()].0,
                (disk, wanted) if disk == wanted.as_ref() => Action::None,
                (None, _) => Action::Create,
                (_, None) => Action::Delete,
                _ => Action::Restore,
            };
            assert_eq!(planned[path.as_str()], (action, file.state), "{path}: {}", self.log());
        }
    }

    /// Only the planned files changed, exactly, and what was overwritten is a blob.
    fn check_files(&self, now: &Entries, changed: &[(String, Version)]) {
        let mut files = files_of(now);
        for (path, version) in changed {
            let overwritten = match version {
                Some(version) => files.insert(path.clone(), version.clone()),
                None => files.remove(path),
            };
            if let Some(Entry::File { content, .. }) = overwritten {
                let name = blake3::hash(&content).to_hex().to_string();
                let mut kept = Vec::new();
                blobs::copy_to(&blobs::folder(&self.desk.store()), &name, Path::new(&name), &mut kept).unwrap();
                assert_eq!(*kept, *content, "{path}: {}", self.log());
            }
        }
        assert_eq!(self.desk.files(), files, "{}", self.log());
    }

    /// The model does what was applied.
    #[expect(clippy::too_many_arguments, reason = "it is what an undo is")]
    fn note(
        &mut self,
        who: usize,
        plan: &Plan,
        goal: &Goal,
        from: usize,
        id: String,
        now: &Entries,
        changed: Vec<(String, Version)>,
    ) {
        let moved = plan.head.is_some();
        self.events.push(format!("   applied as {id}, moved {moved}"));
        self.seen.moved += u64::from(moved);
        let session = &mut self.sessions[who];
        session.head = self.desk.head(&session.source);
        let place = session.add(id, Kind::Restore);
        for (path, after) in changed {
            let before = file_at(now, &path).cloned();
            session.changes.entry(path).or_default().push((place, before, after));
        }
        let (undone, branch) = match session.records.get(from) {
            Some(record) if from < place => (record.undone.clone(), record.branch.clone()),
            _ => (session.undone.clone(), session.branch.clone()),
        };
        if *goal == Goal::Redo {
            self.seen.redone += 1;
            session.active.retain(|(restore, ..)| *restore != from);
            session.undone = undone;
            if let Some(target) = session.targets.get(&from) {
                session.redos.insert(*target, place);
            }
        } else {
            session.active.push((place, moved, false));
            if !matches!(goal, Goal::After(_)) {
                session.targets.insert(place, from);
            }
            let since = (from..place).filter(|place| session.records[*place].is_prompt);
            session.undone = undone.into_iter().filter(|prompt| *prompt < from).chain(since).collect();
        }
        if moved {
            session.branch = branch;
        }
    }

    fn log(&self) -> String {
        self.events.join("\n")
    }

    fn play(&mut self) {
        for _ in 0..2 + self.random.below(5) {
            let who = self.random.below(self.sessions.len() as u64) as usize;
            match self.random.below(10) {
                0..=3 => self.turn(who),
                4 | 5 => self.user_edits(),
                _ if self.sessions[who].records.is_empty() => self.turn(who),
                _ => self.undo(who),
            }
        }
    }
}

#[test]
fn whatever_happened_undo_and_redo_do_exactly_what_they_say() {
    let first = seed().wrapping_mul(1_000_003);
    let mut seen = Seen::default();
    let most = stories() / 10 * 9;
    for number in 0..most {
        let mut story = Story::new(first.wrapping_add(number));
        story.play();
        let Seen { applied, redone, empty, conflicts, refused, skipped, forced, moved } = story.seen;
        seen.applied += applied;
        seen.redone += redone;
        seen.empty += empty;
        seen.conflicts += conflicts;
        seen.refused += refused;
        seen.skipped += skipped;
        seen.forced += forced;
        seen.moved += moved;
    }
    let Seen { applied, redone, empty, conflicts, refused, skipped, forced, moved } = seen;
    let least = [applied, redone, empty, conflicts, refused, skipped, forced, moved].into_iter().min();
    assert!(least > Some(most / 400), "{seen:?}");
}
