//! Writes the title of a growing session again, so that it stays near the end of the file.
//!
//! Claude Code, Codex and Qwen Code keep the title in a line of the log, and a list of sessions reads only the ends of large files.
//! Qwen Code repeats that line for this reason, and all three accept it anywhere.

use super::Durability;
use super::lines::Piece;
use super::log::{Log, Mode};
use crate::model::error::Result;
use crate::model::record::{Body, Title, TitleSource};
use crate::session::read::open::{NEAR_END_BYTES, ReadOptions};
use crate::session::read::source::Source;

/// A title further back than this is written again. It is half of what a list searches, so that one usual record more does not
/// move the title out of there.
const REPEAT_AFTER_BYTES: u64 = NEAR_END_BYTES / 2;

impl Log {
    /// Writes the title again if much was written since. A failure is not one of the caller's record: the title is in the file, and
    /// the next record tries again.
    pub(super) fn repeat_title(&mut self) {
        drop(self.try_repeat_title());
    }

    fn try_repeat_title(&mut self) -> Result<()> {
        let keeps_title_in_log = self.place.dialect.traits().title_mark.is_some();
        let is_ready =
            self.cursor.title_line.is_some() && self.appended > 0 && self.held.is_none() && !self.is_in_doubt();
        let chain = &self.cursor.chain;
        // In Qwen Code a title is a link of the conversation: it must not begin a branch, nor belong to a sub-agent.
        let is_on_main_branch = !chain.starts_branch && !chain.is_sidechain;
        if self.place.mode != Mode::Live || !keeps_title_in_log || !is_ready || !is_on_main_branch {
            return Ok(());
        }
        // Before the file is read: whoever writes in between is noticed by the length.
        let length = self.appender.len()?;
        if self.title_to_repeat(length).is_some() && self.cursor.known_bytes != length {
            // Another program wrote too, perhaps another title.
            let source = Source::file(self.place.dialect, self.path());
            let session = self.place.disk.read_session(&source, &ReadOptions::plain((self.place.host.now)()))?;
            self.cursor.title_line.clone_from(&session.derived.facts.title_line);
            self.cursor.known_bytes = length;
        }
        let Some(title) = self.title_to_repeat(length) else { return Ok(()) };
        self.appender.begin_at(Some(length));
        let written = self.write_here(vec![Piece::next(Body::Title(title))], Durability::Flush);
        self.appender.begin_at(None);
        written.map(drop)
    }

    /// The title, if somebody gave it, its line is too far from the end, and we would accept it.
    fn title_to_repeat(&self, length: u64) -> Option<Title> {
        let line = self.cursor.title_line.as_ref()?;
        let is_given = matches!(line.title.source, TitleSource::Manual | TitleSource::Automatic);
        let is_far = length.saturating_sub(line.end) > REPEAT_AFTER_BYTES;
        let is_valid = || Title::checked(&line.title.text).is_ok_and(|text| text == line.title.text);
        (is_given && is_far && is_valid()).then(|| line.title.clone())
    }
}
