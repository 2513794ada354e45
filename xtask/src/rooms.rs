//! The rooms of a crate and the direction of imports: a room imports from itself and from the rooms before it.
//!
//! ```text
//! lib   model ◀ redact ◀ dialect ◀ session ◀ view ◀ disk ◀ write ◀ transfer
//! cli   terminal ◀ render ◀ session ◀ record ◀ commands
//! ```

use crate::source::{Source, is_word};

/// The rooms of a crate: folders or files of its `src`, in import order.
struct House {
    src: &'static str,
    rooms: &'static [&'static str],
}

const HOUSES: [House; 2] = [
    House { src: "lib/src/", rooms: &["model", "redact", "dialect", "session", "view", "disk", "write", "transfer"] },
    House { src: "cli/src/", rooms: &["terminal", "render", "session", "record", "commands"] },
];

/// Finds imports that point to a later room, and paths that hide which room they mean.
pub(crate) fn check(path: &str, source: &Source) -> Vec<String> {
    let found = HOUSES.iter().find_map(|house| Some((house, path.strip_prefix(house.src)?)));
    let Some((house, inside)) = found else { return Vec::new() };
    let Some(own) = house.position(inside) else { return Vec::new() };
    let depth = module_depth(inside);
    let code = source.shipped_code();
    let lines = code.lines().enumerate();
    lines
        .flat_map(|(at, line)| house.findings(line, own, depth).into_iter().map(move |what| (at + 1, what)))
        .map(|(line, what)| format!("{path}:{line}: {what}"))
        .collect()
}

impl House {
    /// Which room a file below `src` is in.
    fn position(&self, inside: &str) -> Option<usize> {
        let first = inside.split('/').next()?.trim_end_matches(".rs");
        self.rooms.iter().position(|room| *room == first)
    }

    fn findings(&self, line: &str, own: usize, depth: usize) -> Vec<String> {
        let mut findings = Vec::new();
        for (at, _) in line.match_indices("crate::").filter(|(at, _)| !line[..*at].ends_with(is_word)) {
            let rest = &line[at + "crate::".len()..];
            let target: String = rest.chars().take_while(|c| is_word(*c)).collect();
            match self.rooms.iter().position(|room| *room == target) {
                Some(room) if room > own => {
                    findings.push(format!("`{}` imports `{target}`, which is a later room", self.rooms[own]));
                }
                None if rest.starts_with('{') || target.starts_with(|c: char| c.is_ascii_uppercase()) => {
                    findings.push("name the room: `crate::<room>::…`".to_owned());
                }
                Some(_) | None => {}
            }
        }
        if line.contains(&"super::".repeat(depth)) {
            findings.push("`super` leaves the room: write `crate::<room>::…`".to_owned());
        }
        findings
    }
}

/// How many `super::` lead from a module to the root of its crate.
fn module_depth(inside: &str) -> usize {
    let names = inside.split('/').count();
    if inside.ends_with("/mod.rs") { names - 1 } else { names }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, line: &str) -> Vec<String> {
        check(path, &Source::of(&format!("//! A file.\n{line}\n")))
    }

    #[test]
    fn an_import_from_a_later_room_is_found() {
        assert_eq!(
            found("lib/src/session/tree/mod.rs", "use crate::write::store::Store;"),
            ["lib/src/session/tree/mod.rs:2: `session` imports `write`, which is a later room"]
        );
        assert_eq!(found("lib/src/dialect/codex.rs", "fn a() { crate::view::history::of(x) }").len(), 1);
        assert_eq!(found("lib/src/model/mod.rs", "pub use super::dialect::Dialect;").len(), 1);
        assert_eq!(found("lib/src/view/page.rs", "use super::super::write;").len(), 1);
    }

    #[test]
    fn an_import_that_hides_its_room_is_found() {
        assert_eq!(found("lib/src/session/mod.rs", "use crate::{model, write};").len(), 1);
        assert_eq!(found("lib/src/session/mod.rs", "use crate::Store;").len(), 1);
    }

    #[test]
    fn imports_from_the_same_and_from_earlier_rooms_are_fine() {
        for line in [
            "use crate::model::record::Body;",
            "use crate::session::Session;",
            "/// See [`crate::write::store::Store`].",
            "#[cfg(test)] mod tests { use crate::write::store::Store; }",
            "let crate_name = \"crate::write\";",
            "use super::tree::Tree;",
        ] {
            assert_eq!(found("lib/src/session/read/open.rs", line), [""; 0], "{line}");
        }
        assert_eq!(found("lib/src/lib.rs", "pub use crate::write::store::Store;"), [""; 0]);
        assert_eq!(found("cli/src/ctx.rs", "use crate::commands;"), [""; 0]);
        assert_eq!(found("cli/src/render/table.rs", "use crate::commands::list;").len(), 1);
    }
}
