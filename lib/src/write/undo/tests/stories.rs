//! Random stories: agents and people change a project, and undo and redo are compared with a model that keeps every state.
//!
//! ```text
//! story   turn · turn · user edits · undo · turn · undo to a record · redo …      of one session or two
//! model   for each session, each path: what was there before and after each change of it, in the order of records
//! ```

use std::collections::BTreeSet;

use super::*;
use crate::disk::sim::Random;
use crate::write::undo::{Action, Blocked, Plan, Readiness};

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
struct Told {
    id: String,
    is_prompt: bool,
    is_restore: bool,
    /// The prompts that were undone before it.
    undone: BTreeSet<usize>,
    /// The prompts of its branch before it.
    branch: Vec<usize>,
}

/// A session, as the model knows it.
struct Teller {
    source: Source,
    /// The record that the session continues from.
    head: Option<String>,
    records: Vec<Told>,
    /// The changes of each path: the place of the record, what was there before, and what after.
    changes: BTreeMap<String, Vec<(usize, Version, Version)>>,
    undone: BTreeSet<usize>,
    branch: Vec<usize>,
    /// Restores that can be taken back: the place of the record, whether the conversation went back, and
    /// whether it went on since.
    active: Vec<(usize, bool, bool)>,
}

/// What a plan must say of a path.
struct Expected {
    state: Readiness,
    wanted: Version,
}

impl Teller {
    fn tell(&mut self, id: String, kind: Kind) -> usize {
        let (undone, branch) = (self.undone.clone(), self.branch.clone());
        let (is_prompt, is_restore) = (kind == Kind::User, kind == Kind::Restore);
        self.records.push(Told { id, is_prompt, is_restore, undone, branch });
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

    /// What the plan to restore everything to before the record at a place must say.
    fn expected(&self, from: usize, is_redo: bool, now: &Entries) -> BTreeMap<String, Expected> {
        let mut expected = BTreeMap::new();
        for (path, wanted) in self.wanted(from) {
            let changes = &self.changes[path];
            if is_redo && !changes.iter().any(|(place, ..)| *place == from) {
                continue;
            }
            let left = changes.last().map(|(_, _, after)| after);
            let since = &changes[changes.iter().position(|(place, ..)| *place >= from).unwrap_or(0)..];
            let is_of_others = since.windows(2).any(|pair| !is_same_content(&pair[0].2, &pair[1].1));
            let is_in_file = path
                .match_indices('/')
                .any(|(at, _)| matches!(now.get(&path[..at]), Some(Entry::File { .. } | Entry::Link(_))));
            let disk = now.get(path).cloned();
            let state = match &disk {
                Some(Entry::Folder) => Readiness::Refused,
                _ if is_in_file => Readiness::Refused,
                disk if disk == wanted => Readiness::Ready,
                disk if Some(disk) == left && !is_of_others => Readiness::Ready,
                _ => Readiness::Conflict,
            };
            expected.insert(path.to_owned(), Expected { state, wanted: wanted.clone() });
        }
        expected
    }

    /// The place of the prompt that `undo` without a record goes to.
    fn last_turn(&self) -> Option<usize> {
        self.branch.iter().rev().copied().find(|prompt| !self.undone.contains(prompt))
    }
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
    tellers: Vec<Teller>,
    /// What happened, for the message of a failure.
    told: Vec<String>,
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
        let teller = |number| Teller {
            source: desk.source(&format!("s{number}"), place),
            head: None,
            records: Vec::new(),
            changes: BTreeMap::new(),
            undone: BTreeSet::new(),
            branch: Vec::new(),
            active: Vec::new(),
        };
        let tellers = (0..sessions).map(teller).collect();
        let mut story = Story { desk, random, tellers, told: vec![format!("seed {seed}")], seen: Seen::default() };
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
        let touched: Vec<String> = self.tellers.iter().flat_map(|teller| teller.changes.keys().cloned()).collect();
        if !touched.is_empty() && self.random.below(2) == 0 {
            let (path, version) = (self.pick(&touched), self.version());
            let now = self.desk.tree.entries();
            changes =
                if matches!(now.get(&path), Some(Entry::File { .. })) { vec![(path, version)] } else { Vec::new() };
        }
        for (path, version) in changes {
            self.told.push(format!("the user: {path} = {version:?}"));
            self.desk.put(&path, &version);
        }
    }

    fn say(&mut self, who: usize, kind: &str) -> String {
        let teller = &mut self.tellers[who];
        let id = self.desk.say(&teller.source, kind, teller.head.as_deref());
        teller.head = Some(id.clone());
        id
    }

    fn turn(&mut self, who: usize) {
        let prompt = self.say(who, "user");
        self.told.push(format!("s{who} {prompt}"));
        self.tellers[who].tell(prompt, Kind::User);
        for _ in 0..1 + self.random.below(2) {
            let answer = self.say(who, "assistant");
            let place = self.tellers[who].tell(answer.clone(), Kind::Assistant);
            for number in 0..self.random.below(3) {
                self.answer(who, place, &answer, number > 0);
            }
        }
    }

    fn answer(&mut self, who: usize, place: usize, answer: &str, is_update: bool) {
        let source = self.tellers[who].source.clone();
        let changes: BTreeMap<String, Version> = self.some_change().into_iter().collect();
        if changes.is_empty() {
            return;
        }
        let now = self.desk.tree.entries();
        for (path, after) in &changes {
            self.told.push(format!("s{who} {answer}: {path} = {after:?}"));
            let before = now.get(path).filter(|entry| **entry != Entry::Folder).cloned();
            let known = self.tellers[who].changes.entry(path.clone()).or_default();
            match known.last_mut().filter(|(at, ..)| *at == place) {
                Some(same_message) => same_message.2.clone_from(after),
                None => known.push((place, before, after.clone())),
            }
        }
        self.tellers[who].active.clear();
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
        let moves = self.tellers[who].source.store() == Some(self.desk.store()) && self.random.below(3) == 0;
        let scope = if moves { Scope::Conversation } else { Scope::FilesOnly };
        let blocked = self.pick(&[Blocked::Stop, Blocked::Stop, Blocked::Skip, Blocked::Force]);
        let teller = &self.tellers[who];
        let said: Vec<usize> = (0..teller.records.len()).filter(|place| !teller.records[*place].is_restore).collect();
        let some_record = said[self.random.below(said.len() as u64) as usize];
        // The place of the first record whose changes go away.
        let (goal, from) = match self.random.below(8) {
            3..=5 if !teller.active.is_empty() || some_record == 0 => {
                let newest = teller.active.last().filter(|(_, _, is_overtaken)| !is_overtaken);
                (Goal::Redo, newest.map(|(place, ..)| *place))
            }
            0..=5 => (Goal::LastTurn, teller.last_turn()),
            6 => (Goal::Before(teller.records[some_record].id.clone()), Some(some_record)),
            _ => (Goal::After(teller.records[some_record].id.clone()), Some(some_record + 1)),
        };
        self.told.push(format!("s{who}: {goal:?} {scope:?} {blocked:?}"));
        let now = self.desk.tree.entries();
        let expected = from.map(|from| teller.expected(from, goal == Goal::Redo, &now)).unwrap_or_default();
        let source = teller.source.clone();
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
            |(path, file): (&String, &Expected)| is_applied(file.state) && file.wanted.as_ref() != now.get(path);
        let has_something = plan.head.is_some() || expected.iter().any(is_change);
        let is_ready =
            has_something && (blocked == Blocked::Skip || expected.values().all(|file| is_applied(file.state)));
        match applied {
            None => {
                self.seen.empty += 1;
                assert!(expected.iter().all(|(path, file)| file.wanted.as_ref() == now.get(path)), "{}", self.told());
                assert_eq!((self.desk.tree.entries(), fs::read(&source.path).unwrap()), (now, log), "{}", self.told());
            }
            Some(Err(error)) => {
                assert!(!is_ready, "{error}: {}", self.told());
                self.seen.conflicts += 1;
                self.seen.refused += u64::from(expected.values().any(|file| file.state == Readiness::Refused));
                assert_eq!((self.desk.tree.entries(), fs::read(&source.path).unwrap()), (now, log), "{}", self.told());
            }
            Some(Ok(restore)) => {
                assert!(is_ready, "{}", self.told());
                let changed: Vec<(String, Version)> = expected
                    .iter()
                    .filter(|(path, file)| is_applied(file.state) && file.wanted.as_ref() != now.get(*path))
                    .map(|(path, file)| (path.clone(), file.wanted.clone()))
                    .collect();
                assert_eq!(restore.files, changed.len(), "{}", self.told());
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
        assert_eq!(planned.keys().copied().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{}", self.told());
        for (path, file) in expected {
            let disk = now.get(path);
            let action = match (disk, &file.wanted) {
                _ if file.state == Readiness::Refused => planned[path.as_str()].0,
                (disk, wanted) if disk == wanted.as_ref() => Action::None,
                (None, _) => Action::Create,
                (_, None) => Action::Delete,
                _ => Action::Restore,
            };
            assert_eq!(planned[path.as_str()], (action, file.state), "{path}: {}", self.told());
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
                assert_eq!(*kept, *content, "{path}: {}", self.told());
            }
        }
        assert_eq!(self.desk.files(), files, "{}", self.told());
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
        self.told.push(format!("   applied as {id}, moved {moved}"));
        self.seen.moved += u64::from(moved);
        let teller = &mut self.tellers[who];
        teller.head = self.desk.head(&teller.source);
        let place = teller.tell(id, Kind::Restore);
        for (path, after) in changed {
            let before = now.get(&path).cloned();
            teller.changes.entry(path).or_default().push((place, before, after));
        }
        let (undone, branch) = match teller.records.get(from) {
            Some(record) if from < place => (record.undone.clone(), record.branch.clone()),
            _ => (teller.undone.clone(), teller.branch.clone()),
        };
        if *goal == Goal::Redo {
            self.seen.redone += 1;
            teller.active.retain(|(restore, ..)| *restore != from);
            teller.undone = undone;
        } else {
            teller.active.push((place, moved, false));
            let since = (from..place).filter(|place| teller.records[*place].is_prompt);
            teller.undone = undone.into_iter().filter(|prompt| *prompt < from).chain(since).collect();
        }
        if moved {
            teller.branch = branch;
        }
    }

    fn told(&self) -> String {
        self.told.join("\n")
    }

    fn play(&mut self) {
        for _ in 0..2 + self.random.below(5) {
            let who = self.random.below(self.tellers.len() as u64) as usize;
            match self.random.below(10) {
                0..=3 => self.turn(who),
                4 | 5 => self.user_edits(),
                _ if self.tellers[who].records.is_empty() => self.turn(who),
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
