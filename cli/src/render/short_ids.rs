//! Ids for people: as few characters as name one thing, and at least eight.
//!
//! Ids that were made in the same moment can begin alike (the first half of a UUID of version 7 is its time), so eight characters are not
//! enough for every session. What is printed is accepted wherever a unique prefix is.

use std::borrow::Cow;

use scrollback::session::Session;

/// Fewer characters are hard to tell apart.
pub(crate) const SHORT_ID_CHARS: usize = 8;

/// The ids that a short one must be told apart from.
pub(crate) enum ShortIds<'a> {
    /// All of them, sorted.
    Among(Vec<Cow<'a, str>>),
    /// They are not known: every id is printed in full, except random ones. Those of one session hardly ever begin alike, and if two
    /// do, a short one is refused as ambiguous.
    Unknown,
}

impl<'a> ShortIds<'a> {
    /// Short ids of a session's records. Of a session that was read in part, not all ids are known.
    pub(crate) fn of_records(session: &'a Session) -> ShortIds<'a> {
        match session.whole() {
            true => ShortIds::among(session.records().map(|record| record.id())),
            false => ShortIds::Unknown,
        }
    }

    /// Short ids of sessions that a command knows.
    pub(crate) fn of_sessions(ids: impl Iterator<Item = String>) -> ShortIds<'static> {
        ShortIds::among(ids.map(Cow::Owned))
    }

    fn among<'i>(ids: impl Iterator<Item = Cow<'i, str>>) -> ShortIds<'i> {
        let mut ids: Vec<Cow<'i, str>> = ids.collect();
        ids.sort_unstable();
        ids.dedup();
        ShortIds::Among(ids)
    }

    /// Adds an id.
    pub(crate) fn add(&mut self, id: &str) {
        if let ShortIds::Among(ids) = self
            && let Err(at) = ids.binary_search_by(|known| (**known).cmp(id))
        {
            ids.insert(at, Cow::Owned(id.to_owned()));
        }
    }

    /// The beginning of a session's id that no other session's has. An id with `#` or `:` is printed in full: in a part of it, what
    /// follows would be taken for a record, and what comes before for a dialect.
    pub(crate) fn short_session<'i>(&self, id: &'i str) -> &'i str {
        if id.contains(['#', ':']) { id } else { self.short(id) }
    }

    /// The beginning of an id that no other id has.
    pub(crate) fn short<'i>(&self, id: &'i str) -> &'i str {
        let ShortIds::Among(ids) = self else {
            return if is_random(id) { &id[..SHORT_ID_CHARS] } else { id };
        };
        // Of all other ids, one beside it in the order has the longest common beginning.
        let at = ids.partition_point(|known| **known < *id);
        let before = at.checked_sub(1).and_then(|before| ids.get(before));
        let after = ids[at..].iter().find(|known| **known != *id);
        let shared = |other: &Cow<'_, str>| id.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        let needed = before.into_iter().chain(after).map(|other| shared(other) + 1).max().unwrap_or(0);
        let end = id.char_indices().nth(needed.max(SHORT_ID_CHARS)).map_or(id.len(), |(end, _)| end);
        &id[..end]
    }
}

/// Whether an id is a UUID of version 4: all of it is random.
fn is_random(id: &str) -> bool {
    let is_form = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        14 => byte == b'4',
        _ => byte.is_ascii_hexdigit(),
    };
    id.len() == 36 && id.bytes().enumerate().all(is_form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_as_long_as_it_must_be() {
        let ids =
            ["0190f0e2-aaaa-1", "0190f0e2-aaab-1", "3f8a1c2d-0001", "abc", "abcdefghij", "abcdefghijk", "ünïcödé-1"];
        let ids = ShortIds::of_sessions(ids.into_iter().map(str::to_owned));
        assert_eq!(ids.short("0190f0e2-aaaa-1"), "0190f0e2-aaaa");
        assert_eq!(ids.short("0190f0e2-aaab-1"), "0190f0e2-aaab");
        assert_eq!(ids.short("3f8a1c2d-0001"), "3f8a1c2d");
        assert_eq!(ids.short("abc"), "abc");
        assert_eq!(ids.short("abcdefghij"), "abcdefghij", "a longer one begins with it: only all of it names it");
        assert_eq!(ids.short("abcdefghijk"), "abcdefghijk");
        assert_eq!(ids.short("ünïcödé-1"), "ünïcödé-");
        assert_eq!(ids.short("0190f0e2-aaac-1"), "0190f0e2-aaac", "an id that is not there is no beginning of another");
        assert_eq!(ShortIds::Unknown.short("0190f0e2-aaaa-1"), "0190f0e2-aaaa-1");
        for (id, short) in [
            ("ece64bda-90a1-4c1f-9a6e-0c84a1d1c2f3", "ece64bda"),
            ("01a1eb14-5843-7083-955f-2300849875c0", "01a1eb14-5843-7083-955f-2300849875c0"),
            ("ünïcödé-90a1-4c1f-9a6e-0c84a1d1c2f", "ünïcödé-90a1-4c1f-9a6e-0c84a1d1c2f"),
        ] {
            assert_eq!(ShortIds::Unknown.short(id), short);
        }
    }

    #[test]
    fn an_id_that_is_added_counts() {
        let mut ids = ShortIds::of_sessions(std::iter::once("0190f0e2-1".to_owned()));
        assert_eq!(ids.short("0190f0e2-1"), "0190f0e2");
        ids.add("0190f0e2-2");
        ids.add("0190f0e2-2");
        assert_eq!((ids.short("0190f0e2-1"), ids.short("0190f0e2-2")), ("0190f0e2-1", "0190f0e2-2"));
    }
}
