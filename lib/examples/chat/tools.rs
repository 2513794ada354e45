//! The two tools of the example: files of the working directory are read and written, and no others.

use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use scrollback::model::message::ToolPart;
use scrollback::model::record::ToolResult;

/// More of a file would fill the model's window.
const READ_LIMIT_BYTES: u64 = 256 * 1024;

/// Name, description and parameters of each tool.
pub(crate) const KNOWN: [(&str, &str, &[&str]); 2] = [
    ("read_file", "Read a text file below the working directory", &["path"]),
    ("write_file", "Write a text file below the working directory, whatever was in it", &["path", "content"]),
];

/// Does what the model asks for. What goes wrong is an answer too.
pub(crate) fn run(call: &ToolPart, cwd: &Path) -> ToolResult {
    let text = |key: &str| {
        let text = call.input().and_then(|input| input.get(key)?.as_str());
        text.ok_or_else(|| format!("{key} is missing"))
    };
    let is_known = KNOWN.iter().any(|(name, ..)| *name == call.name);
    let path = if is_known { text("path") } else { Err(format!("there is no tool {:?}", call.name)) };
    let done = path.and_then(|path| match (call.name.as_str(), inside(cwd, path)?) {
        ("read_file", file) => read(&file).map_err(|error| format!("{path}: {error}")),
        (_, file) => {
            fs::write(file, text("content")?).map_err(|error| format!("{path}: {error}"))?;
            Ok(format!("{path} is written"))
        }
    });
    ToolResult::of(call, done.map(Into::into))
}

fn read(path: &Path) -> std::io::Result<String> {
    let (mut file, mut bytes) = (fs::File::open(path)?, Vec::new());
    file.by_ref().take(READ_LIMIT_BYTES).read_to_end(&mut bytes)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if file.read(&mut [0])? > 0 {
        text.push_str(&format!("\n[the file goes on: these are its first {READ_LIMIT_BYTES} bytes]"));
    }
    Ok(text)
}

/// The path, where it does not lead out of the working directory; neither does a link on the way.
fn inside(cwd: &Path, path: &str) -> Result<PathBuf, String> {
    let whole = cwd.join(path);
    let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let existing = if whole.symlink_metadata().is_ok() { Some(whole.as_path()) } else { whole.parent() };
    let real = existing.map(fs::canonicalize).transpose().map_err(|error| format!("{path}: {error}"))?;
    let root = fs::canonicalize(cwd).map_err(|error| format!("{}: {error}", cwd.display()))?;
    let is_inside = is_plain && real.is_some_and(|real| real.starts_with(root));
    if is_inside { Ok(whole) } else { Err(format!("{path}: only files below the working directory")) }
}
