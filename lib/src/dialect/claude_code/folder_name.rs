//! The names of project folders. Names collide: the `cwd` of the records identifies a project, never the folder.

/// A longer name is cut to this length and gets a hash.
const NAME_UNITS: usize = 200;

/// The folder of a working directory: every UTF-16 unit other than an ASCII letter or digit becomes `-`.
///
/// ```
/// assert_eq!(scrollback::dialect::folder_name("/home/ada/my.proj_1"), "-home-ada-my-proj-1");
/// ```
pub fn folder_name(cwd: &str) -> String {
    let mut name = whole_folder_name(cwd);
    if name.len() > NAME_UNITS {
        name.truncate(NAME_UNITS);
        name.push('-');
        name.push_str(&base_36(string_hash(cwd).unsigned_abs()));
    }
    name
}

/// The same without a limit, for agents that adopted the rule before names were cut.
pub(crate) fn whole_folder_name(cwd: &str) -> String {
    let plain = |unit: u16| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric).map_or('-', char::from);
    cwd.encode_utf16().map(plain).collect()
}

/// The folder according to older descriptions: only `/` and `.` become `-`.
pub fn documented_folder_name(cwd: &str) -> String {
    cwd.replace(['/', '.'], "-")
}

/// The hash of a string as Java and JavaScript programs compute it, over UTF-16 units.
fn string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0, |hash: i32, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

fn base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_as_the_agent_names_them() {
        for (cwd, real, documented) in [
            ("/home/user/project", "-home-user-project", "-home-user-project"),
            ("/home/user/github.com/repo", "-home-user-github-com-repo", "-home-user-github-com-repo"),
            ("/home/dev/w/claude/my.proj_1", "-home-dev-w-claude-my-proj-1", "-home-dev-w-claude-my-proj_1"),
            ("/home/dev/a b/Ü/日", "-home-dev-a-b----", "-home-dev-a b-Ü-日"),
            ("/x/😀", "-x---", "-x-😀"),
            ("", "", ""),
        ] {
            assert_eq!((folder_name(cwd), documented_folder_name(cwd)), (real.to_owned(), documented.to_owned()));
        }
    }

    #[test]
    fn a_long_name_is_cut_and_hashed() {
        let fits = format!("/{}", "a".repeat(199));
        assert_eq!(folder_name(&fits), format!("-{}", "a".repeat(199)));
        let long = format!("/{}", "a".repeat(200));
        let name = folder_name(&long);
        assert_eq!(name[..201], format!("-{}-", "a".repeat(199)));
        assert_ne!(folder_name(&format!("{long}b")), folder_name(&format!("{long}c")));
    }

    #[test]
    fn hashes_are_those_of_javascript() {
        for (text, hash, digits) in
            [("", 0, "0"), ("a", 97, "2p"), ("hello", 99_162_322, "1n1e4y"), ("polygenelubricants", i32::MIN, "zik0zk")]
        {
            assert_eq!((string_hash(text), base_36(string_hash(text).unsigned_abs())), (hash, digits.to_owned()));
        }
    }
}
