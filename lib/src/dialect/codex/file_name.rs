//! The name of a session's file: `rollout-2026-11-15T20-48-14-<session id>.jsonl`, and `.zst` behind it when compressed.
//! A further file of a session has `_<segment id>` behind the session id.

use crate::dialect::writer::is_uuid;

/// The parts of a session file's name.
///
/// ```
/// use scrollback::dialect::RolloutFileName;
///
/// let name = "rollout-2026-11-15T20-48-14-01a1e0f7-bc87-7ea3-9152-fdcfa4291034.jsonl.zst";
/// let parsed = RolloutFileName::parse(name).expect("a name that Codex writes");
/// assert_eq!(parsed.time, "2026-11-15T20-48-14");
/// assert_eq!(parsed.session, "01a1e0f7-bc87-7ea3-9152-fdcfa4291034");
/// assert_eq!(parsed.render(), name);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolloutFileName<'a> {
    /// When the session started, in the local time of the writer, with `-` for `:`.
    pub time: &'a str,
    /// The session's id.
    pub session: &'a str,
    /// The name of the part of the session, if it began in another file.
    pub segment: Option<&'a str>,
    /// Whether the file is compressed.
    pub compressed: bool,
}

/// The pattern of the time: `0` is any digit.
const TIME: &str = "0000-00-00T00-00-00";

impl<'a> RolloutFileName<'a> {
    /// Parses a name. Everything after the time is the session id: foreign ones need not be UUIDs.
    pub fn parse(name: &'a str) -> Option<RolloutFileName<'a>> {
        let rest = name.strip_prefix("rollout-")?;
        let unpacked = rest.strip_suffix(".zst");
        let (compressed, rest) = (unpacked.is_some(), unpacked.unwrap_or(rest).strip_suffix(".jsonl")?);
        let (time, session) = (rest.get(..TIME.len())?, rest.get(TIME.len()..)?.strip_prefix('-')?);
        let fits = |(found, form): (char, char)| if form == '0' { found.is_ascii_digit() } else { found == form };
        let is_valid = time.chars().zip(TIME.chars()).all(fits) && !session.is_empty();
        let (session, segment) = match session.split_once('_') {
            Some((session, segment)) if is_uuid(session) && is_uuid(segment) => (session, Some(segment)),
            _ => (session, None),
        };
        is_valid.then_some(RolloutFileName { time, session, segment, compressed })
    }

    /// The name with these parts.
    pub fn render(&self) -> String {
        let ending = if self.compressed { ".jsonl.zst" } else { ".jsonl" };
        let segment = self.segment.map(|segment| format!("_{segment}")).unwrap_or_default();
        format!("rollout-{}-{}{segment}{ending}", self.time, self.session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_the_round_trip() {
        for name in [
            "rollout-2026-11-15T20-48-14-01a1e0f7-bc87-7ea3-9152-fdcfa4291034.jsonl",
            "rollout-2026-11-15T20-48-14-01a1e0f7-bc87-7ea3-9152-fdcfa4291034.jsonl.zst",
            "rollout-2026-01-02T03-04-05-x.jsonl",
            "rollout-2026-01-02T03-04-05-x_y.jsonl",
            "rollout-2026-01-02T03-04-05-01a1e0f7-bc87-7ea3-9152-fdcfa4291034_01a1e43e-9423-7940-8982-5bbbe690c6a3.jsonl",
            "rollout-2026-01-02T03-04-05-.jsonl.jsonl",
        ] {
            assert_eq!(RolloutFileName::parse(name).unwrap().render(), name);
        }
    }

    #[test]
    fn other_names_are_rejected() {
        for name in [
            "",
            "rollout-.jsonl",
            "rollout-2026-11-15T20-48-14-.jsonl",
            "rollout-2026-11-15T20-48-14.jsonl",
            "rollout-2026-11-15 20-48-14-x.jsonl",
            "rollout-2026-11-15T20-48-1ä-x.jsonl",
            "rollout-2026-11-15T20-48-14-x.json",
            "messages.jsonl",
        ] {
            assert_eq!(RolloutFileName::parse(name), None, "{name}");
        }
    }
}
