//! The tools: they read and write files below the working directory, and no others.

use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use scrollback::ToolPart;

/// More of a file would fill the model's window.
const READ_LIMIT_BYTES: u64 = 256 * 1024;

/// Name, description and parameters of each tool.
pub(crate) const ALL: [(&str, &str, &[&str]); 2] = [
    ("read_file", "Read a text file below the working directory", &["path"]),
    ("write_file", "Write a text file below the working directory and replace its content", &["path", "content"]),
];

/// The file that a call of the model will change, if any.
pub(crate) fn changes(call: &ToolPart, cwd: &Path) -> Option<PathBuf> {
    let path = call.input()?.get("path")?.as_str().filter(|_| call.name == "write_file")?;
    inside(cwd, path).ok()
}

/// Runs a call of the model.
pub(crate) fn run(call: &ToolPart, cwd: &Path) -> Result<String, String> {
    let input = call.input().unwrap_or_default();
    let argument = |key: &str| input[key].as_str().ok_or_else(|| format!("{key} is missing"));
    let done = match call.name.as_str() {
        "read_file" => read(&inside(cwd, argument("path")?)?),
        "write_file" => {
            fs::write(inside(cwd, argument("path")?)?, argument("content")?).map(|()| "The file is written.".to_owned())
        }
        name => return Err(format!("unknown tool {name:?}")),
    };
    done.map_err(|error| error.to_string())
}

fn read(path: &Path) -> std::io::Result<String> {
    let (mut file, mut bytes) = (fs::File::open(path)?, Vec::new());
    file.by_ref().take(READ_LIMIT_BYTES).read_to_end(&mut bytes)?;
    if file.read(&mut [0])? > 0 {
        bytes.extend(format!("\n[the file is longer: these are its first {READ_LIMIT_BYTES} bytes]").bytes());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The path, unless it or a symlink in it leads out of the working directory.
fn inside(cwd: &Path, path: &str) -> Result<PathBuf, String> {
    let whole = cwd.join(path);
    let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let existing = if whole.symlink_metadata().is_ok() { &whole } else { whole.parent().unwrap_or(cwd) };
    let real = |path: &Path| fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()));
    let is_inside = is_plain && real(existing)?.starts_with(real(cwd)?);
    if is_inside { Ok(whole) } else { Err(format!("{path}: only files below the working directory")) }
}
