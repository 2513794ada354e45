//! Profiles: the rules that a format states for its lines, and the verdict on every line of a session.
//!
//! Reading is lenient; a profile is strict. The rules of a profile are in its dialect; here they are applied to a file.

use std::io::{BufRead, BufReader, Read};

use serde::{Deserialize, Serialize};

use crate::dialect::Event;
pub use crate::dialect::profile::{Fault, Profile};
use crate::model::error::{At, Result};
use crate::model::record::Kind;
use crate::session::Session;
use crate::session::read::parser::VALUE_LIMIT_BYTES;
use crate::session::read::sanitize;

/// The verdict on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The message, where messages are checked instead of lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The line, counted from 1; 0 in a format without lines.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub line: u64,
    /// Whether it follows every rule.
    pub valid: bool,
    /// The first rule that it breaks.
    #[serde(flatten)]
    pub fault: Option<Fault>,
    /// The further ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<Fault>,
    /// Everything that is wrong with a message, one sentence each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<Vec<String>>,
}

fn is_unknown(line: &u64) -> bool {
    *line == 0
}

impl Session {
    /// Checks each line of the session's first file, except blank ones.
    pub fn verdicts(&self, profile: Profile) -> Result<Vec<Verdict>> {
        let Some(file) = self.files.0.first() else { return Ok(Vec::new()) };
        let mut reader = BufReader::new(file.reader(0));
        let (mut verdicts, mut bytes, mut line) = (Vec::new(), Vec::new(), 0);
        loop {
            bytes.clear();
            line += 1;
            let limit = VALUE_LIMIT_BYTES as u64 + 1;
            if (&mut reader).take(limit).read_until(b'\n', &mut bytes).at(&file.path)? == 0 {
                return Ok(verdicts);
            }
            let too_long = bytes.len() > VALUE_LIMIT_BYTES;
            if too_long {
                reader.skip_until(b'\n').at(&file.path)?;
            }
            let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).trim_ascii();
            if text.is_empty() {
                continue;
            }
            let unreadable = |reason: &str| vec![Fault { field: None, reason: reason.to_owned() }];
            let faults = match std::str::from_utf8(text) {
                _ if too_long => unreadable("too long to be read"),
                Ok(text) => profile.faults(text),
                Err(_) => unreadable("bytes that are not UTF-8"),
            };
            let mut faults = faults.into_iter();
            let fault = faults.next();
            let (valid, further) = (fault.is_none(), faults.collect());
            verdicts.push(Verdict { id: None, line, valid, fault, further, problems: None });
        }
    }

    /// Checks each message against its agent's own rules; `None` if there are none.
    pub fn message_verdicts(&self) -> Result<Option<Vec<Verdict>>> {
        let mut verdicts = Vec::new();
        // The container of the messages is not a message.
        for record in self.records().filter(|record| record.kind() != Kind::Header) {
            let Some(bytes) = record.raw()?.pop() else { continue };
            let text = sanitize::whole(&bytes);
            let (mut rules, mut problems, mut is_message) = (None, Vec::new(), false);
            // Unreadable values were reported when the session was read.
            let _read = self.dialect().link(&text, &mut |event| match event {
                Event::Validate(of_agent) => rules = Some(of_agent),
                Event::WholeMessage => is_message = true,
                Event::UnknownKind(what) => problems.push(format!("{what} is not known")),
                Event::MissingField(what) => problems.push(format!("{what} is missing")),
                _ => {}
            });
            let is_stray = is_message && record.kind() == Kind::Other;
            if rules.is_none() && !is_stray {
                continue;
            }
            problems.extend(rules.and_then(|rules| rules(&text)));
            let fault = problems.first().map(|reason| Fault { field: None, reason: reason.clone() });
            let (id, line) = (Some(record.id().into_owned()), u64::from(record.place().line));
            let (valid, further) = (problems.is_empty(), Vec::new());
            verdicts.push(Verdict { id, line, valid, fault, further, problems: Some(problems) });
        }
        Ok(Some(verdicts).filter(|verdicts| !verdicts.is_empty()))
    }
}
