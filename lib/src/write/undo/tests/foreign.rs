//! Random stories of Claude Code: with its backups, with the files that it notes of edits, and with nothing but the edits. What is
//! restored is exact, or nothing is.

use super::*;
use crate::disk::sim::Random;

/// What the agent keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeps {
    /// A copy of each file that it changes, at each prompt.
    Backups,
    /// The file before each edit, in the result.
    Notes,
    /// The arguments of its calls.
    Edits,
}

const PATHS: [&str; 4] = ["a.rs", "b.txt", "src/c.rs", "src/deep/d.rs"];
const WORDS: [&str; 6] = ["tide", "moon", "high", "low", "ebb", "flow"];

type Texts = BTreeMap<String, String>;

struct Story {
    desk: Desk,
    random: Random,
    source: Source,
    keeps: Keeps,
    parent: Option<String>,
    /// The prompts, and the files at each.
    prompts: Vec<(String, Texts)>,
    /// Each change of a file: the prompt, the path, and what was there before.
    changes: Vec<(usize, String, Option<String>)>,
    /// The last backup of each tracked file: its version, and its text.
    backups: BTreeMap<String, (u64, Option<String>)>,
    events: Vec<String>,
}

impl Story {
    fn new(seed: u64) -> Story {
        let mut random = Random(seed);
        let desk = Desk::new();
        let keeps = [Keeps::Backups, Keeps::Notes, Keeps::Edits][random.below(3) as usize];
        let log = desk.folder.path().join("claude/projects/-simulated/s1.jsonl");
        let source = Source::file(dialect::named("claude-code").unwrap(), &log);
        let (events, parent) = (vec![format!("seed {seed}, {keeps:?}")], None);
        let (prompts, changes, backups) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut story = Story { desk, random, source, keeps, parent, prompts, changes, backups, events };
        for path in PATHS {
            if story.random.below(2) == 0 {
                let text = story.text();
                story.write(path, &text);
            }
        }
        story
    }

    fn text(&mut self) -> String {
        let lines = self.random.below(4);
        let end = if self.random.below(4) == 0 { "\r\n" } else { "\n" };
        let mut text: String = (0..lines).map(|_| format!("{} {}{end}", self.word(), self.word())).collect();
        if self.random.below(4) == 0 {
            text.push_str(self.word());
        }
        text
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.random.below(WORDS.len() as u64) as usize]
    }

    fn write(&mut self, path: &str, text: &str) {
        self.events.push(format!("   {path} = {text:?}"));
        self.desk.tree.put(path, Entry::file(text.as_bytes(), 0o644));
    }

    fn texts(&self) -> Texts {
        let text = |entry: &Entry| match entry {
            Entry::File { content, .. } => String::from_utf8(content.to_vec()).unwrap(),
            Entry::Link(_) | Entry::Folder => String::new(),
        };
        self.desk.files().iter().map(|(path, entry)| (path.clone(), text(entry))).collect()
    }

    fn line(&mut self, kind: &str, message: &Value, note: Option<Value>) -> String {
        let id = self.desk.new_id(kind);
        let mut line = json!({"type": kind, "uuid": id, "parentUuid": self.parent, "sessionId": "s1", "cwd": ROOT,
            "timestamp": "2026-11-15T12:00:00Z", "version": "2.1.325", "isSidechain": false, "userType": "external",
            "message": message});
        if let Some(note) = note {
            line["toolUseResult"] = note;
        }
        self.desk.append(&self.source, &line);
        self.parent = Some(id.clone());
        id
    }

    fn turn(&mut self) {
        let texts = self.texts();
        let prompt = self.line("user", &json!({"role": "user", "content": "Change it."}), None);
        self.events.push(prompt.clone());
        self.prompts.push((prompt, texts.clone()));
        if self.keeps == Keeps::Backups {
            let tracked: Vec<String> = self.backups.keys().cloned().collect();
            tracked.iter().for_each(|path| self.back_up(path, texts.get(path)));
            self.snapshot(false);
        }
        for _ in 0..self.random.below(3) {
            self.call();
        }
    }

    fn back_up(&mut self, path: &str, text: Option<&String>) {
        let known = self.backups.get(path);
        if known.is_some_and(|(_, kept)| kept.as_ref() == text) {
            return;
        }
        let version = known.map_or(1, |(version, _)| version + 1);
        if let Some(text) = text {
            let folder = self.desk.folder.path().join("claude/file-history/s1");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(backup_name(path, version)), text).unwrap();
        }
        self.backups.insert(path.to_owned(), (version, text.cloned()));
    }

    fn snapshot(&self, is_update: bool) {
        let (message, _) = &self.prompts[self.prompts.len() - 1];
        let backup = |(path, (version, text)): (&String, &(u64, Option<String>))| {
            let name = text.is_some().then(|| backup_name(path, *version));
            (path.clone(), json!({"backupFileName": name, "version": version, "backupTime": "2026-11-15T12:00:00Z"}))
        };
        let tracked: serde_json::Map<String, Value> = self.backups.iter().map(backup).collect();
        let snapshot =
            json!({"messageId": message, "trackedFileBackups": tracked, "timestamp": "2026-11-15T12:00:00Z"});
        self.desk.append(
            &self.source,
            &json!({"type": "file-history-snapshot", "messageId": message, "snapshot": snapshot,
                "isSnapshotUpdate": is_update}),
        );
    }

    /// The agent writes a file, or edits it.
    fn call(&mut self) {
        let path = PATHS[self.random.below(PATHS.len() as u64) as usize];
        let before = self.texts().get(path).cloned();
        if self.keeps == Keeps::Backups && !self.backups.contains_key(path) {
            self.back_up(path, before.as_ref());
            self.snapshot(true);
        }
        let (old, new) = (self.word(), format!("{} {}", self.word(), self.word()));
        let is_edit = before.as_ref().is_some_and(|text| text.matches(old).count() == 1) && self.random.below(3) > 0;
        let after = match &before {
            Some(text) if is_edit => text.replacen(old, &new, 1),
            _ => self.text(),
        };
        let place = Path::new(ROOT).join(path);
        let (name, input) = match is_edit {
            true => ("Edit", json!({"file_path": place, "old_string": old, "new_string": new})),
            false => ("Write", json!({"file_path": place, "content": after})),
        };
        let kind = if before.is_some() { "update" } else { "create" };
        let note = json!({"type": kind, "filePath": place, "originalFile": before, "structuredPatch": [], "userModified": false});
        let id = self.desk.new_id("toolu");
        let call = json!([{"type": "tool_use", "id": id, "name": name, "input": input}]);
        let message =
            json!({"role": "assistant", "id": format!("msg_{id}"), "model": "claude-opus-5-5", "content": call});
        self.line("assistant", &message, None);
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": "done"}]);
        self.line("user", &json!({"role": "user", "content": result}), (self.keeps != Keeps::Edits).then_some(note));
        self.changes.push((self.prompts.len() - 1, path.to_owned(), before));
        self.events.push(format!("   {name}"));
        self.write(path, &after);
    }

    /// The files when the session goes back to a prompt: what it never changed since stays.
    fn files_at(&self, prompt: usize) -> Texts {
        let mut files = self.texts();
        let mut seen = std::collections::BTreeSet::new();
        for (_, path, before) in self.changes.iter().filter(|(at, ..)| *at >= prompt) {
            if seen.insert(path) {
                let kept = self.changes.iter().any(|(at, known, _)| known == path && *at < prompt);
                let text = match self.keeps == Keeps::Backups && kept {
                    // It was tracked at the prompt.
                    true => self.prompts[prompt].1.get(path).cloned(),
                    false => before.clone(),
                };
                match text {
                    Some(text) => files.insert(path.clone(), text),
                    None => files.remove(path),
                };
            }
        }
        files
    }

    /// Goes back to a prompt and comes again. Returns whether it was possible.
    fn there_and_back(&mut self) -> bool {
        let prompt = self.random.below(self.prompts.len() as u64) as usize;
        self.events.push(format!("back to {}", self.prompts[prompt].0));
        let (now, expected) = (self.texts(), self.files_at(prompt));
        let goal = Goal::Before(self.prompts[prompt].0.clone());
        if !self.apply(&goal, &now) {
            assert!(self.keeps == Keeps::Edits, "{}", self.log());
            return false;
        }
        assert_eq!(self.texts(), expected, "{}", self.log());
        if now != expected {
            assert!(self.apply(&Goal::Redo, &expected), "{}", self.log());
        }
        assert_eq!(self.texts(), now, "after a redo: {}", self.log());
        true
    }

    /// Whether a plan was ready and is applied; else nothing changes.
    fn apply(&self, goal: &Goal, now: &Texts) -> bool {
        self.desk.undo(&self.source, |undo| {
            let plan = undo.plan(goal, Scope::FilesOnly).unwrap();
            let is_ready = plan.is_ready(Blocked::Stop);
            let allowed = [Readiness::Ready, Readiness::Unproven, Readiness::Conflict];
            assert!(plan.files.iter().all(|file| allowed.contains(&file.state)), "{:?}: {}", plan.files, self.log());
            if !plan.is_empty() {
                assert_eq!(undo.apply(&plan, Blocked::Stop).is_ok(), is_ready, "{}", self.log());
            }
            assert!(is_ready || self.texts() == *now, "{}", self.log());
            is_ready
        })
    }

    /// A person edits a file that the session changed last: nothing is restored any more.
    fn edit_and_go_back(&mut self) {
        let Some((prompt, path, _)) = self.changes.last().cloned() else { return };
        self.events.push("the user".to_owned());
        self.write(&path, "mine, and nobody else's\n");
        let (now, goal) = (self.texts(), Goal::Before(self.prompts[prompt].0.clone()));
        assert!(!self.apply(&goal, &now), "{}", self.log());
        assert_eq!(self.texts(), now, "{}", self.log());
    }

    fn log(&self) -> String {
        self.events.join("\n")
    }
}

fn backup_name(path: &str, version: u64) -> String {
    format!("{}@v{version}", &blake3::hash(path.as_bytes()).to_hex()[..16])
}

#[test]
fn what_claude_code_did_is_taken_back_exactly_or_not_at_all() {
    let first = seed().wrapping_mul(1_000_033);
    let (mut restored, mut unproven) = ([0; 3], 0);
    let stories = stories::stories() / 10;
    for number in 0..stories {
        let mut story = Story::new(first.wrapping_add(number));
        for _ in 0..1 + story.random.below(3) {
            story.turn();
            if story.random.below(2) == 0 {
                match story.there_and_back() {
                    true => restored[story.keeps as usize] += 1,
                    false => unproven += 1,
                }
            }
        }
        if story.random.below(2) == 0 {
            story.edit_and_go_back();
        }
    }
    let enough = stories / 20;
    assert!(restored.iter().all(|count| *count > enough) && unproven > enough, "{restored:?}, {unproven} unproven");
}
