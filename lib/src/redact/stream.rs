//! A text that arrives in pieces: what could still become a secret is held back.

use super::scan::{MAX_CONTEXT_BYTES, Open};
use super::{Engine, MORE_LOOKS, Redactor, Rules, Style, assignment, blocks, custom, digits};

/// At most so much is held back, whatever could come, except for an open private key.
pub(super) const MAX_HELD_BYTES: usize = 16 * 1024;

/// A text that arrives in pieces. The pieces that it lets go are, joined, what [`Redactor::text`] makes of the whole text.
///
/// A secret of more than 16 KiB is the exception, unless it is a private key.
///
/// ```
/// use scrollback::redact::{Redactor, Settings, Stream};
///
/// let redactor = Redactor::new(Settings::with_key([7; 32]))?;
/// let mut stream = Stream::new();
/// assert_eq!(stream.push(&redactor, "the password is tid"), "the password is ");
/// assert_eq!(stream.push(&redactor, "e-4-morning, or so"), "[REDACTED:password], or ");
/// assert_eq!(stream.finish(&redactor), "so");
/// # Ok::<(), scrollback::redact::RuleError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// What was let go and may say what follows, then what is held back; not redacted.
    text: String,
    /// Where what is held back starts.
    held: usize,
    /// A key is open: it is not looked at again before the text is so long, or a line of dashes comes.
    wait_until: usize,
}

/// An open key is looked at again when it has grown by this part of itself: once for each piece would take the square of its length.
const GROWTH: usize = 16;

impl Stream {
    /// Nothing has arrived.
    pub fn new() -> Stream {
        Stream::default()
    }

    /// Adds a piece, and returns what can be let go.
    pub fn push(&mut self, redactor: &Redactor, piece: &str) -> String {
        self.text.push_str(piece);
        if self.text.len() < self.wait_until && !piece.contains('-') {
            return String::new();
        }
        let (until, header) = match &redactor.rules {
            Rules::Table(engine, _) => engine.safe_until(&self.text, self.held),
            Rules::Code(rules) => {
                let held = rules.iter().map(|rule| rule.held_back(&self.text[self.held..])).max();
                (self.text.len().saturating_sub(held.unwrap_or_default()), None)
            }
        };
        let out = self.release(redactor, self.text.floor_char_boundary(until).max(self.held), header);
        let has_open_key =
            out.is_empty() && redactor.engine().is_some_and(|(engine, _)| engine.has_open_key(&self.text));
        self.wait_until = if has_open_key { self.text.len() + self.text.len() / GROWTH } else { 0 };
        out
    }

    /// Returns everything that is held back. More may follow: of a secret that is cut here, the rest is masked.
    pub fn finish(&mut self, redactor: &Redactor) -> String {
        self.wait_until = 0;
        let header = redactor.engine().and_then(|(engine, _)| engine.safe_until(&self.text, self.held).1);
        self.release(redactor, self.text.len(), header)
    }

    /// How many bytes are held back.
    pub fn held_back(&self) -> usize {
        self.text.len() - self.held
    }

    /// Lets everything go up to a place. The header of a table is kept for the rows that follow, as long as they are not too many.
    fn release(&mut self, redactor: &Redactor, until: usize, header: Option<usize>) -> String {
        let part = &self.text[self.held..until];
        let out = match &redactor.rules {
            Rules::Table(engine, style) => engine.redact_part(&self.text, self.held, until, *style),
            Rules::Code(rules) => custom::scrubbed(rules, None, part).unwrap_or_else(|| part.to_owned()),
        };
        // White space at the start of what is kept would look like the start of a line.
        let keep = self.text.floor_char_boundary(until.saturating_sub(MAX_CONTEXT_BYTES));
        let line = self.text[keep..until]
            .find(char::is_whitespace)
            .map_or(keep, |at| if keep == 0 { 0 } else { keep + at });
        // The rest of a private key is known by its start.
        let line = line.min(label_before(&self.text[..until]).map_or(until, |at| blocks::line_start(&self.text, at)));
        let line = line.min(header.filter(|header| until.saturating_sub(*header) <= MAX_HELD_BYTES).unwrap_or(until));
        self.text.drain(..line);
        self.held = until - line;
        out
    }
}

impl Engine {
    /// Up to where a text is safe to let go, from `held` on, and where the header starts that the next lines may belong to.
    fn safe_until(&self, text: &str, held: usize) -> (usize, Option<usize>) {
        let mut found = Vec::new();
        let mut open = Open::default();
        self.find(text, &mut found, Some(&mut open));
        let end = text.len();
        // A word is complete when white space follows it.
        let word = text[held..]
            .rfind(char::is_whitespace)
            .map_or(held, |at| held + at + text[held + at..].chars().next().map_or(1, char::len_utf8));
        let mut until = word.min(digits::open_number(text)).min(number_before(text, word));
        until = until.min(label_before(text).unwrap_or(end));
        until = until.min(assignment::open_trail(text).unwrap_or(end));
        if !self.users.is_empty() {
            until = until.min(text[held..].rfind('\n').map_or(held, |at| held + at + 1));
        }
        if let Some(masked) = &self.masked {
            until = until.min(end.saturating_sub(masked.longest_with_space));
        }
        // What is complete, but not so long that it could not become a part of something longer.
        let touching = found.iter().filter(|found| {
            found.span.end >= end || text[found.span.end..].trim().is_empty() && found.with_quotes.end + 1 >= end
        });
        let openings = touching.map(|found| found.with_quotes.start).chain(open.from);
        let until = openings.fold(until, usize::min).max(held);
        let crossing = |until: usize| {
            found
                .iter()
                .filter(|found| found.with_quotes.start < until && until < found.with_quotes.end)
                .map(|found| found.with_quotes.start)
                .min()
        };
        let limit = if self.has_open_key(text) { blocks::MAX_BLOCK_BYTES } else { MAX_HELD_BYTES };
        let mut until = until.max(end.saturating_sub(limit)).max(held);
        // What is found may lie across another finding.
        for _ in 0..MORE_LOOKS {
            let Some(start) = crossing(until) else { break };
            until = start;
        }
        (until.max(held), open.header)
    }

    fn has_open_key(&self, text: &str) -> bool {
        blocks::begins(text).any(|at| blocks::at(text, at).is_some_and(|block| block.is_open))
    }

    /// A part of a text without its secrets, found in the whole.
    fn redact_part(&self, text: &str, from: usize, until: usize, style: Style) -> String {
        let mut out = String::new();
        let mut copied = from;
        for mask in self.masks(None, text, style) {
            let span = mask.span.start.max(copied)..mask.span.end.min(until);
            if span.start < span.end {
                out.push_str(&text[copied..span.start]);
                out.push_str(&mask.placeholder);
                copied = span.end;
            }
        }
        out.push_str(&text[copied..until]);
        out
    }
}

/// The start of the digits before a word that may go on with them: a card number has spaces in it.
fn number_before(text: &str, word: usize) -> usize {
    let may_go_on = |c: char| {
        c.is_ascii_digit() || c.is_ascii_uppercase() || c.is_ascii_lowercase() && digits::says_iban(&text[..word])
    };
    if text[word..].chars().next().is_none_or(may_go_on) {
        return digits::open_number(&text[..word]);
    }
    word
}

/// `-----BEGIN RSA PRI`: the label has spaces in it.
fn label_before(text: &str) -> Option<usize> {
    let at = blocks::begins(text).max()?;
    blocks::at(text, at).filter(|block| block.is_open).map(|block| block.span.start)
}

const _: () = assert!(assignment::MAX_QUOTED_BYTES < MAX_HELD_BYTES);
