//! How a converted session becomes its original again: at once, over several originals, or not at all.

use std::path::Path;

use hashbrown::HashMap;
use jiff::Timestamp;

use super::{Beside, Original};
use crate::dialect::writer::Shape;
use crate::dialect::{self, Dialect};
use crate::model::record::Kind;
use crate::session::read::open::ReadOptions;
use crate::session::{RecordRef, Session};

impl Original {
    /// What this original means for a conversion of the session to a dialect.
    pub(in crate::transfer::convert) fn towards(self, session: &Session, to: &'static dyn Dialect) -> Beside {
        // A session of that dialect is copied.
        let leads_there = session.dialect().name() != to.name()
            && self.fits(session)
            && self.chain().any(|original| original.from.dialect == to.name());
        let Some(next) = dialect::named(&self.from.dialect).filter(|_| leads_there) else {
            return Beside { other: Some(self), ..Beside::default() };
        };
        // Not only records are added: an agent may write down its head.
        let length = session.files.0.first().and_then(|file| file.len().ok());
        let has_grown = length.is_some_and(|length| length > self.converted_bytes);
        let is_linear = next.writer().is_some_and(|writing| writing.shape == Shape::Linear);
        if has_grown && is_linear && !self.continues_at_end(session, next) {
            let warning = format!(
                "the session continues from an earlier record, and {} has no branches: the branch is converted as a new session",
                next.name()
            );
            return Beside { other: Some(self), warning: Some(warning), ..Beside::default() };
        }
        let original = if has_grown { self.into_lines(next) } else { self };
        if next.name() == to.name() {
            Beside { original: Some(original), ..Beside::default() }
        } else {
            Beside { step: Some((original, next)), ..Beside::default() }
        }
    }

    /// The session as the conversion wrote it.
    pub(in crate::transfer::convert) fn as_converted(&self, session: &Session) -> Session {
        let bytes = session.files.0.first().and_then(|file| file.read_at(0, self.converted_bytes).ok());
        Session::from_bytes(session.dialect(), bytes.unwrap_or_default(), &ReadOptions::plain(Timestamp::UNIX_EPOCH))
    }

    /// Whether what was added follows the original's last record: a linear format can continue nowhere else.
    fn continues_at_end(&self, session: &Session, to: &'static dyn Dialect) -> bool {
        let original = self.session(to);
        let is_end = |head: &String| original.head().is_some_and(|end| end.id() == head.as_str());
        if !self.head.as_ref().is_none_or(is_end) {
            return false;
        }
        let branch = |session: &Session| -> Vec<String> {
            let records = session.head().map(|head| session.branch(head).records).unwrap_or_default();
            let is_message = |record: &RecordRef<'_>| record.kind().is_dialogue() || record.kind() == Kind::Compaction;
            records.into_iter().filter(is_message).map(|record| record.id().into_owned()).collect()
        };
        branch(session).starts_with(&branch(&self.as_converted(session)))
    }

    /// One JSON document cannot be appended to: each of its messages becomes a line, byte for byte except for line breaks.
    fn into_lines(mut self, dialect: &'static dyn Dialect) -> Original {
        let is_document = serde_json::from_slice::<serde::de::IgnoredAny>(&self.bytes).is_ok()
            && (self.bytes.trim_ascii_end().contains(&b'\n') || self.bytes.trim_ascii_start().starts_with(b"["));
        if !is_document {
            return self;
        }
        let document = self.session(dialect);
        let (mut lines, mut ids) = (Vec::new(), HashMap::new());
        for record in document.records().filter(|record| !record.is_side()) {
            let Some(mut line) = record.raw().ok().and_then(|raw| raw.into_iter().next()) else { continue };
            line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
            if record.id() == record.place().name() {
                ids.insert(record.id().into_owned(), format!("at-{}", lines.len()));
            }
            lines.append(&mut line);
            lines.push(b'\n');
        }
        for id in self.ids.values_mut().chain(&mut self.head) {
            ids.get(id.as_str()).into_iter().for_each(|new| id.clone_from(new));
        }
        self.bytes = lines.into();
        let place = self.from.place.map(|place| Path::new(&place).with_extension("jsonl"));
        self.from.place = place.map(|place| place.to_string_lossy().into_owned());
        self
    }

    /// Whether a record was written after the conversion.
    pub(in crate::transfer::convert) fn is_newer(&self, record: RecordRef<'_>) -> bool {
        !record.is_inherited() && record.place().offset >= self.converted_bytes
    }

    /// Whether something was added to a record after the conversion, in a format that joins the pieces of a record.
    pub(in crate::transfer::convert) fn is_added_to_later(&self, record: RecordRef<'_>) -> bool {
        let Session { skeleton, derived, .. } = record.session;
        let mut pieces = derived.tree.entries_of(record.node).iter().copied();
        let is_later = |at: u32| skeleton.entries[at as usize].place.offset >= self.converted_bytes;
        !record.is_inherited() && !self.is_newer(record) && pieces.any(is_later)
    }
}
