//! The names of project folders. A name cannot be turned back into a path: `project_dir` has the path.

use crate::dialect::documented_folder_name;

/// The folder according to sage's description: `/` becomes `-` and dots stay; it ends with `-`, because Emacs ends
/// directories with a slash.
///
/// ```
/// assert_eq!(scrollback::dialect::sage_folder_name("/home/ada/my.proj"), "-home-ada-my.proj-");
/// ```
pub fn sage_folder_name(dir: &str) -> String {
    format!("{}/", dir.trim_end_matches('/')).replace('/', "-")
}

/// The folder since sage follows Claude Code: `/` and `.` become `-`, and nothing is added.
pub fn aligned_sage_folder_name(dir: &str) -> String {
    let without_slash = dir.trim_end_matches('/');
    documented_folder_name(if without_slash.is_empty() { dir } else { without_slash })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::folder_name;

    #[test]
    fn a_folder_has_a_name_in_each_encoding() {
        for (dir, current, aligned, claude_documented, claude_real) in [
            (
                "/home/user/project",
                "-home-user-project-",
                "-home-user-project",
                "-home-user-project",
                "-home-user-project",
            ),
            (
                "/home/user/github.com/repo",
                "-home-user-github.com-repo-",
                "-home-user-github-com-repo",
                "-home-user-github-com-repo",
                "-home-user-github-com-repo",
            ),
            (
                "/home/user/project/",
                "-home-user-project-",
                "-home-user-project",
                "-home-user-project-",
                "-home-user-project-",
            ),
            ("/x/my_proj 1", "-x-my_proj 1-", "-x-my_proj 1", "-x-my_proj 1", "-x-my-proj-1"),
            ("/a-b/c", "-a-b-c-", "-a-b-c", "-a-b-c", "-a-b-c"),
            ("/a/b/c", "-a-b-c-", "-a-b-c", "-a-b-c", "-a-b-c"),
            ("/", "-", "-", "-", "-"),
            ("/x/Ü", "-x-Ü-", "-x-Ü", "-x-Ü", "-x--"),
        ] {
            let names =
                [sage_folder_name(dir), aligned_sage_folder_name(dir), documented_folder_name(dir), folder_name(dir)];
            assert_eq!(names, [current, aligned, claude_documented, claude_real], "{dir}");
        }
    }
}
