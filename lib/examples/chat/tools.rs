//! The two tools of the example: files of the working directory are read and written, and no others.

use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use scrollback::message::ToolPart;
use scrollback::record::{Outcome, ToolResult};
use serde_json::{Map, Value, json};

/// More of a file would fill the model's window.
const READ_LIMIT_BYTES: u64 = 256 * 1024;

/// Name, description and parameters of each tool.
pub(crate) fn known() -> [(&'static str, &'static str, Value); 2] {
    let text = |what: &str| json!({"type": "string", "description": what});
    let path = text("relative to the working directory");
    [
        (
            "read_file",
            "Read a text file",
            json!({"type": "object", "properties": {"path": path}, "required": ["path"]}),
        ),
        (
            "write_file",
            "Write a text file, whatever was in it",
            json!({"type": "object", "properties": {"path": path, "content": text("all of it")}, "required": ["path", "content"]}),
        ),
    ]
}

/// Does what the model asks for. What goes wrong is an answer too.
pub(crate) fn run(call: &ToolPart, cwd: &Path) -> ToolResult {
    let text = |key: &str| {
        let text = call.input().and_then(|input| input.get(key)?.as_str());
        text.ok_or_else(|| format!("{key} is missing"))
    };
    let done = match call.name.as_str() {
        "read_file" => text("path").and_then(|path| read(cwd, path)),
        "write_file" => text("path").and_then(|path| write(cwd, path, text("content")?)),
        name => Err(format!("there is no tool {name:?}")),
    };
    let (output, outcome) = match done {
        Ok(output) => (output, Outcome::Done),
        Err(why) => (why.clone(), Outcome::Failed(why)),
    };
    ToolResult {
        call_id: call.call_id.clone(),
        name: Some(call.name.clone()),
        output: output.into(),
        outcome,
        preliminary: false,
        duration_ms: None,
        about: Map::new(),
    }
}

fn read(cwd: &Path, path: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{path}: {error}");
    let mut bytes = Vec::new();
    let mut file = fs::File::open(inside(cwd, path)?).map_err(failed)?;
    file.by_ref().take(READ_LIMIT_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if file.read(&mut [0]).map_err(failed)? > 0 {
        text.push_str(&format!("\n[{path} goes on: these are its first {READ_LIMIT_BYTES} bytes]"));
    }
    Ok(text)
}

fn write(cwd: &Path, path: &str, content: &str) -> Result<String, String> {
    fs::write(inside(cwd, path)?, content).map_err(|error| format!("{path}: {error}"))?;
    Ok(format!("{} bytes written", content.len()))
}

/// The path, where it does not lead out of the working directory; neither does a link on the way.
fn inside(cwd: &Path, path: &str) -> Result<PathBuf, String> {
    let outside = || format!("{path}: only files below the working directory");
    if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(outside());
    }
    let whole = cwd.join(path);
    let existing = if whole.symlink_metadata().is_ok() { Some(whole.as_path()) } else { whole.parent() };
    let real = existing.map(fs::canonicalize).transpose().map_err(|error| format!("{path}: {error}"))?;
    let root = fs::canonicalize(cwd).map_err(|error| format!("{}: {error}", cwd.display()))?;
    if real.is_some_and(|real| real.starts_with(root)) { Ok(whole) } else { Err(outside()) }
}
