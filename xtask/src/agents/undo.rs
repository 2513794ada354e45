//! An agent edits files, and scrollback takes that back and brings it again, turn by turn: every byte is compared.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::model::CALLS;
use super::sandbox::Sandbox;
use super::scenario::Step;
use super::{Agent, Bench, Row};

pub(super) const NAME: &str = "edited by the agent, undone and redone by scrollback";

/// The bytes of every file of a project.
type Project = BTreeMap<PathBuf, Vec<u8>>;

impl Bench {
    /// The row of an agent that edits files in two turns. It counts the files that should be there after each undo and redo, and
    /// those that are.
    pub(super) fn undo_row(&self, agent: &'static Agent, edit: &[&str]) -> Result<Row, Box<dyn std::error::Error>> {
        let mut sandbox = Sandbox::new(self, agent, NAME)?;
        // Windows line ends, and no line end at the end: an undo that splits lines would change them.
        fs::write(sandbox.cwd.join("tides.txt"), "04:12\r\n16:40")?;
        fs::write(sandbox.cwd.join("untouched.bin"), [0, 255, 13, 10])?;
        let mut states = vec![project(&sandbox.cwd)?];
        for (arguments, calls) in [agent.begin, agent.resume].into_iter().zip(turns(&sandbox.cwd)) {
            let arguments = [arguments, edit].concat();
            let log = sandbox.log()?.unwrap_or_default();
            sandbox.start_agent(&arguments, &log, &format!("{CALLS}{calls}"))?;
            states.push(project(&sandbox.cwd)?);
        }
        let [before, between, after] = &states[..] else { return Err("two turns have three states".into()) };
        if sandbox.log()?.is_none() || before == between || between == after {
            return Ok(Row::not_written(agent, NAME.to_owned()));
        }
        let (mut expected, mut restored, mut different) = (0, 0, Vec::new());
        for (step, state) in [(Step::Undo, between), (Step::Undo, before), (Step::Redo, between), (Step::Redo, after)] {
            sandbox.run(&step)?;
            let now = project(&sandbox.cwd)?;
            let paths = state.keys().chain(now.keys().filter(|path| !state.contains_key(*path)));
            different
                .extend(paths.filter(|path| state.get(*path) != now.get(*path)).map(|path| path.display().to_string()));
            expected += state.len();
            restored += state.iter().filter(|(path, bytes)| now.get(*path) == Some(bytes)).count();
        }
        let verdict = if different.is_empty() { "the same" } else { "different" }.to_owned();
        let cells = [String::new(), expected.to_string(), restored.to_string(), verdict];
        Ok(Row::new(agent, NAME.to_owned(), cells, different.join(", ")))
    }
}

/// The calls of two turns: files are edited, made, and replaced. The agent edits only what it has read.
fn turns(cwd: &Path) -> [Value; 2] {
    let call = |name: &str, path: &str, more: Value| {
        let mut input = json!({"file_path": cwd.join(path)});
        if let (Value::Object(input), Value::Object(more)) = (&mut input, more) {
            input.extend(more);
        }
        json!({"name": name, "input": input})
    };
    let read = |path: &str| call("Read", path, json!({}));
    let write = |path: &str, content: &str| call("Write", path, json!({"content": content}));
    let edit = |path: &str, old: &str, new: &str| call("Edit", path, json!({"old_string": old, "new_string": new}));
    [
        json!([read("tides.txt"), edit("tides.txt", "04:12", "04:13"), write("made/high.txt", "springs ☂\n")]),
        json!([
            read("tides.txt"),
            edit("tides.txt", "16:40", "16:41"),
            read("made/high.txt"),
            write("made/high.txt", "neaps"),
            write("low.txt", ""),
        ]),
    ]
}

/// What a project contains.
fn project(root: &Path) -> io::Result<Project> {
    let mut files = Project::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let inside = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
                files.insert(inside, fs::read(&path)?);
            }
        }
    }
    Ok(files)
}
