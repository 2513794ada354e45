//! How an agent is started to continue one of its sessions.

/// The command line with which an agent continues a session: the program, its arguments, then the session's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResumeCommand {
    /// The agent's name, for people.
    pub agent: &'static str,
    /// The program.
    pub program: &'static str,
    /// Its arguments before the session's id.
    pub arguments: &'static [&'static str],
    /// The variables that name the store in which the agent looks for the session; the first one that is set counts.
    pub store_variables: &'static [&'static str],
}

impl ResumeCommand {
    /// Whether the agent finds a session by this id: it is a UUID.
    ///
    /// An id comes from a file that anybody may have written. One of this shape is never read as an option of the program.
    pub fn accepts(&self, session: &str) -> bool {
        (32..=36).contains(&session.len())
            && session.starts_with(|letter: char| letter.is_ascii_hexdigit())
            && session.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    }
}
