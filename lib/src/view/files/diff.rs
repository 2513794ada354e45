//! Differences between two versions of a file, for people.

use super::version::FileVersion;

/// A unified diff of two texts; `None` if they are equal, or not text. A side that does not exist is `None`.
pub fn unified_diff(path: &str, before: Option<&str>, after: Option<&str>) -> Option<String> {
    let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
    if before == after || old.contains('\0') || new.contains('\0') {
        return None;
    }
    let diff = similar::TextDiff::configure().timeout(std::time::Duration::from_secs(1)).diff_lines(old, new);
    // A name with a line end in it would be a line of the diff.
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    let path: String = path.chars().map(escaped).collect();
    let name = |side: &str, text: Option<&str>| text.map_or("/dev/null".to_owned(), |_| format!("{side}/{path}"));
    let (from, to) = (name("a", before), name("b", after));
    // A file that is empty has no lines that could tell that it comes or goes.
    if old == new {
        return Some(format!("--- {from}\n+++ {to}\n"));
    }
    Some(diff.unified_diff().header(&from, &to).to_string())
}

/// What differs beside the text: permissions, or the target of a link.
pub fn kind_change(before: &FileVersion, after: &FileVersion) -> Option<String> {
    match (before, after) {
        (FileVersion::File { mode: Some(before), .. }, FileVersion::File { mode: Some(after), .. }) => {
            let [before, after] = [before, after].map(|mode| mode & 0o777);
            (before != after).then(|| format!("mode {before:o} → {after:o}"))
        }
        (FileVersion::Link(before), FileVersion::Link(after)) => {
            (before != after).then(|| format!("link {before} → {after}"))
        }
        (FileVersion::File { .. }, FileVersion::Link(to)) => Some(format!("file → link to {to}")),
        (FileVersion::Link(to), FileVersion::File { .. }) => Some(format!("link to {to} → file")),
        (FileVersion::Absent, FileVersion::Link(to)) | (FileVersion::Link(to), FileVersion::Absent) => {
            Some(format!("link to {to}"))
        }
        (FileVersion::File { .. } | FileVersion::Absent, FileVersion::File { .. } | FileVersion::Absent) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_does_not_exist_is_dev_null() {
        for (before, after, expected) in [
            (Some("a\n"), Some(""), Some("--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-a\n")),
            (Some("a\n"), None, Some("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n")),
            (None, Some(""), Some("--- /dev/null\n+++ b/f\n")),
            (Some(""), None, Some("--- a/f\n+++ /dev/null\n")),
            (Some("a"), Some("a"), None),
            (Some("a\0"), None, None),
        ] {
            assert_eq!(unified_diff("f", before, after).as_deref(), expected, "{before:?} {after:?}");
        }
        assert_eq!(unified_diff("a\n+b", None, Some("")).as_deref(), Some("--- /dev/null\n+++ b/a\\n+b\n"));
    }
}
