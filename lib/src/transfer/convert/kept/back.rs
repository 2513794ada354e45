//! Which way leads back: what was added since the conversion, and whether the original can be gone on with there.

use std::path::Path;

use hashbrown::HashMap;
use jiff::Timestamp;

use super::{Beside, Kept, KeptLine};
use crate::dialect::writer::Shape;
use crate::dialect::{self, Dialect};
use crate::model::record::Kind;
use crate::session::read::open::ReadOptions;
use crate::session::{RecordRef, Session};

impl Kept {
    /// The way to a dialect: the step back, or the first of several.
    pub(in crate::transfer::convert) fn towards(self, session: &Session, to: &'static dyn Dialect) -> Beside {
        // What is one of these already stays as it is.
        let is_on_the_way = session.dialect().name() != to.name()
            && self.fits(session)
            && self.chain().any(|kept| kept.from.dialect == to.name());
        let Some(next) = dialect::named(&self.from.dialect).filter(|_| is_on_the_way) else {
            return Beside { other: Some(self), ..Beside::default() };
        };
        // Not all that is added is a record: a head is named, too.
        let has_newer = self.is_added_to(session);
        let is_line = next.writer().is_some_and(|writing| writing.shape == Shape::Linear);
        if has_newer && is_line && !self.goes_on_at_its_end(session, next) {
            let remark = format!(
                "it went on from an earlier record, and {} has no branches: the branch is converted anew",
                next.name()
            );
            return Beside { other: Some(self), remark: Some(remark), ..Beside::default() };
        }
        let kept = if has_newer { self.into_lines(next) } else { self };
        if next.name() == to.name() {
            Beside { back: Some(kept), ..Beside::default() }
        } else {
            Beside { step: Some((kept, next)), ..Beside::default() }
        }
    }

    /// Whether anything was written behind what the conversion wrote.
    fn is_added_to(&self, session: &Session) -> bool {
        session
            .files
            .0
            .first()
            .is_some_and(|file| file.len().is_ok_and(|length| length > self.converted_bytes))
    }

    /// The session as the conversion wrote it.
    pub(in crate::transfer::convert) fn as_converted(&self, session: &Session) -> Session {
        let bytes = session.files.0.first().and_then(|file| file.read_at(0, self.converted_bytes).ok());
        Session::from_bytes(session.dialect(), bytes.unwrap_or_default(), &ReadOptions::plain(Timestamp::UNIX_EPOCH))
    }

    /// Whether what was added follows what the original ends with: a line of records can be gone on with nowhere else.
    fn goes_on_at_its_end(&self, session: &Session, to: &'static dyn Dialect) -> bool {
        let original = Session::from_bytes(to, self.original(), &ReadOptions::plain(Timestamp::UNIX_EPOCH));
        let is_its_end = |head: &str| original.head().is_some_and(|end| end.id() == head);
        if !self.head().is_none_or(is_its_end) {
            return false;
        }
        let was = self.as_converted(session);
        let branch = |session: &Session| -> Vec<String> {
            let records = session.head().map(|head| session.branch(head).records).unwrap_or_default();
            let content = records.into_iter().filter(|record| {
                matches!(record.kind(), Kind::User | Kind::Assistant | Kind::ToolResult | Kind::Compaction)
            });
            content.map(|record| record.id().into_owned()).collect()
        };
        let (was, is) = (branch(&was), branch(session));
        is.starts_with(&was)
    }

    /// A document cannot be gone on with: each of its messages becomes a line, byte for byte but for the ends of lines.
    fn into_lines(mut self, dialect: &'static dyn Dialect) -> Kept {
        let original = self.original();
        let is_document = serde_json::from_slice::<serde::de::IgnoredAny>(&original).is_ok()
            && (self.lines.len() > 1 || original.trim_ascii_start().starts_with(b"["));
        if !is_document {
            return self;
        }
        let document = Session::from_bytes(dialect, original, &ReadOptions::plain(Timestamp::UNIX_EPOCH));
        let (mut lines, mut names, mut offset) = (Vec::new(), HashMap::new(), 0);
        for record in document.records().filter(|record| !record.is_side()) {
            let Some(mut line) = record.raw().ok().and_then(|raw| raw.into_iter().next()) else { continue };
            line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
            if record.id() == record.place().name() {
                names.insert(record.id().into_owned(), format!("at-{offset}"));
            }
            offset += line.len() + 1;
            lines.push(KeptLine::of(&line));
        }
        let renamed = |name: &mut String| name.clone_from(names.get(name.as_str()).unwrap_or(&name.clone()));
        self.ids.values_mut().chain(&mut self.head).for_each(renamed);
        (self.lines, self.closed) = (lines, true);
        self.from.place = self
            .from
            .place
            .and_then(|place| Path::new(&place).with_extension("jsonl").to_str().map(str::to_owned));
        self
    }

    /// Whether a record was written after the conversion.
    pub(in crate::transfer::convert) fn is_newer(&self, record: RecordRef<'_>) -> bool {
        !record.is_inherited() && record.place().offset >= self.converted_bytes
    }

    /// Whether a record of the conversion was added to afterwards: a format that joins the pieces of one allows it.
    pub(in crate::transfer::convert) fn is_added_to_later(&self, record: RecordRef<'_>) -> bool {
        let Session { skeleton, derived, .. } = record.session;
        let mut pieces = derived.tree.entries_of(record.node).into_iter();
        let is_later = |at: u32| skeleton.entries[at as usize].place.offset >= self.converted_bytes;
        !record.is_inherited() && !self.is_newer(record) && pieces.any(is_later)
    }
}
