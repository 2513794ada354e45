//! Names with * in them, as people type them.

/// Whether a name matches a pattern in which * matches anything.
pub(crate) fn matches_glob(glob: &str, name: &str) -> bool {
    let mut pieces = glob.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_anything() {
        for (glob, name, expected) in [
            ("Bash", "Bash", true),
            ("Bash", "BashOutput", false),
            ("Bash*", "BashOutput", true),
            ("mcp__*__read*", "mcp__files__read_all", true),
            ("*read", "read", true),
            ("*a*a", "a", false),
            ("*", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches_glob(glob, name), expected, "{glob} {name}");
        }
    }
}
