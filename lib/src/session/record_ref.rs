//! One record of a session: its links are known at once, its body is read on demand.

use std::borrow::Cow;
use std::path::Path;

use jiff::Timestamp;
use xxhash_rust::xxh3::Xxh3;

use crate::model::error::Result;
use crate::model::place::Place;
use crate::model::record::{Body, Kind, ToolResult};
use crate::session::Session;
use crate::session::join::BodyJoiner;
use crate::session::read::sanitize;
use crate::session::tree::NodeIx;
use crate::session::tree::skeleton::{BaseGap, Entry, Flags, KeyRole, NO_TIME, ROOT};

/// One record of a session.
#[derive(Clone, Copy)]
pub struct RecordRef<'s> {
    pub(crate) session: &'s Session,
    pub(crate) node: NodeIx,
}

/// The id of the second, third, … record with the same id.
pub(crate) fn copy_name(id: &str, copy: u32) -> String {
    format!("{id}~{copy}")
}

impl<'s> RecordRef<'s> {
    fn entry(self) -> &'s Entry {
        self.session.derived.tree.entry(&self.session.skeleton, self.node)
    }

    /// Its id; a second record with the same id has a number after it.
    pub fn id(self) -> Cow<'s, str> {
        let id = self.session.skeleton.ids.get(self.entry().id);
        match self.session.derived.tree.nodes[self.node as usize].copy {
            0 | 1 => Cow::Borrowed(id),
            copy => Cow::Owned(copy_name(id, copy)),
        }
    }

    /// The id in its line, which other records can have too.
    pub(crate) fn written_id(self) -> &'s str {
        self.session.skeleton.ids.get(self.entry().id)
    }

    /// Its number in file order, counted from 0.
    pub fn order(self) -> usize {
        self.node as usize
    }

    /// Its parent.
    pub fn parent(self) -> Option<RecordRef<'s>> {
        self.session.derived.tree.parent(self.node).map(|node| self.session.at(node))
    }

    /// Its children, in file order.
    pub fn children(self) -> impl DoubleEndedIterator<Item = RecordRef<'s>> + ExactSizeIterator {
        self.session.derived.tree.children(self.node).iter().map(move |node| self.session.at(*node))
    }

    /// The id of its parent, when that is missing.
    pub fn missing_parent(self) -> Option<&'s str> {
        self.session.derived.tree.missing.get(&self.node).map(|id| self.session.skeleton.ids.get(*id))
    }

    /// Whether the session that it continues is missing.
    pub fn has_missing_base(self) -> bool {
        self.session.derived.tree.base_gaps.get(&self.node) == Some(&BaseGap::NoSession)
    }

    /// Whether its file continues another one of the same session, there or not.
    pub fn continues_its_session(self) -> bool {
        self.session.dialect().segment_from_path(self.file()).is_some()
            || self.missing_parent().is_some_and(|missing| self.session.source.has_file_named(missing))
    }

    /// Whether the session that it continues begins in this one.
    pub fn is_in_a_cycle(self) -> bool {
        self.session.derived.tree.base_gaps.get(&self.node) == Some(&BaseGap::Cycle)
    }

    /// Whether its file does not say in a usable way what it continues.
    pub fn has_unclear_base(self) -> bool {
        let why = self.session.derived.tree.base_gaps.get(&self.node);
        matches!(why, Some(BaseGap::BeginsLater | BaseGap::Unstated))
    }

    /// Whether its line says that it has no parent.
    pub(crate) fn is_root(self) -> bool {
        self.entry().parent == ROOT
    }

    /// Whether it belongs to the session that this one begins in.
    pub fn is_inherited(self) -> bool {
        self.entry().flags.has(Flags::INHERITED)
    }

    /// Whether it is marked as a copy of a record of the session that this one was forked from.
    pub(crate) fn is_copied(self) -> bool {
        self.entry().flags.has(Flags::COPIED)
    }

    /// Its kind.
    pub fn kind(self) -> Kind {
        self.entry().kind
    }

    /// Its time: the latest of its fragments.
    pub fn at(self) -> Option<Timestamp> {
        let at = self.session.derived.tree.nodes[self.node as usize].at;
        (at != NO_TIME).then(|| Timestamp::from_microsecond(at).ok()).flatten()
    }

    /// Whether it belongs to a side conversation.
    pub fn is_sidechain(self) -> bool {
        self.entry().flags.has(Flags::SIDECHAIN)
    }

    /// Whether it is outside the chain of parents.
    pub fn is_side(self) -> bool {
        self.entry().flags.has(Flags::SIDE)
    }

    /// Whether it is the answer that became the summary of a compaction.
    pub(crate) fn is_summary(self) -> bool {
        self.entry().flags.has(Flags::SUMMARY)
    }

    /// Whether it reports a failure of the agent itself.
    pub fn is_failure(self) -> bool {
        self.entry().flags.has(Flags::FAILURE)
    }

    /// Whether it is one item of an answer.
    pub(crate) fn is_item(self) -> bool {
        self.entry().flags.has(Flags::ITEM)
    }

    /// Whether it only reacts to another record.
    pub fn is_reaction(self) -> bool {
        self.entry().flags.has(Flags::REACTION)
    }

    /// Whether it is a whole message.
    pub(crate) fn is_message(self) -> bool {
        self.entry().flags.has(Flags::MESSAGE)
    }

    /// Whether it only states something about the message before it.
    pub(crate) fn is_state(self) -> bool {
        self.entry().flags.has(Flags::STATE)
    }

    /// The last context record beside the conversation before it.
    pub(crate) fn surroundings(self) -> Option<RecordRef<'s>> {
        let known = &self.session.derived.surroundings;
        let before = known.partition_point(|node| *node < self.node);
        known[..before].last().map(|node| self.session.at(*node))
    }

    /// The hashes of its keys with this role.
    pub(crate) fn keys(self, wanted: KeyRole) -> impl Iterator<Item = u64> + 's {
        self.session
            .derived
            .keys
            .of(self.node)
            .filter(move |(role, _)| *role == wanted)
            .map(|(_, hash)| hash)
    }

    /// The records that tell how its calls ended, where that was after their results.
    pub(crate) fn late_results(self) -> impl Iterator<Item = RecordRef<'s>> {
        let is_late = move |call| self.session.derived.keys.late_result(call, self.is_sidechain());
        self.keys(KeyRole::Call).filter_map(is_late).map(move |node| self.session.at(node))
    }

    /// The record whose call ended as this one tells, where that was after its result.
    pub(crate) fn late_caller(self) -> Option<RecordRef<'s>> {
        let caller = self.session.derived.keys.late_caller(self.node, self.is_sidechain())?;
        Some(self.session.at(caller))
    }

    /// Hashes everything that a message takes from this record: its bytes, its id, its parent and its context.
    pub(crate) fn hash_into(self, hash_into: &mut Xxh3) {
        let pieces = |record: RecordRef<'s>, hash_into: &mut Xxh3| {
            for entry in self.session.derived.tree.entries_of(record.node) {
                let Entry { place, hash, .. } = self.session.skeleton.entries[*entry as usize];
                hash_into.update(&hash.to_le_bytes());
                hash_into.update(&place.offset.to_le_bytes());
                hash_into.update(&place.file.to_le_bytes());
            }
        };
        pieces(self, hash_into);
        hash_into.update(self.id().as_bytes());
        hash_into.update(self.parent().map(RecordRef::id).unwrap_or_default().as_bytes());
        if let Some(surroundings) = self.surroundings() {
            pieces(surroundings, hash_into);
        }
    }

    /// Whether a fragment of it ends after this byte of the first file.
    pub(crate) fn ends_after(self, offset: u64) -> bool {
        self.end().is_some_and(|end| end > offset)
    }

    /// Where its last fragment in the first file ends; `None` if it has none there.
    pub fn end(self) -> Option<u64> {
        let in_first_file = self.places().filter(|place| place.file == 0);
        in_first_file.map(|place| place.offset + u64::from(place.length)).max()
    }

    /// The place of its first fragment.
    pub fn place(self) -> Place {
        self.entry().place
    }

    /// Whether it has no other fragment, and is in the first file.
    pub fn is_one_piece(self) -> bool {
        self.place().file == 0 && !self.session.derived.tree.fragments.contains_key(&self.node)
    }

    /// The places of all its fragments.
    pub(crate) fn places(self) -> impl Iterator<Item = Place> + 's {
        let entries = self.session.derived.tree.entries_of(self.node);
        entries.iter().map(move |entry| self.session.skeleton.entries[*entry as usize].place)
    }

    /// The file of that place.
    pub fn file(self) -> &'s Path {
        &self.session.files.0[usize::from(self.place().file)].path
    }

    /// Its body, all fragments joined.
    pub fn body(self) -> Result<Body> {
        let exact = self.exact()?;
        let Some(mask) = &self.session.mask else { return Ok(self.body_of(&exact)) };
        // A secret may be split over fragments: each alone shows nothing.
        let joined = (exact.len() > 1).then(|| self.body_of(&exact));
        let mut body = self.body_of(&mask.pieces(self, exact)?);
        if let Some(joined) = joined {
            mask.joined_texts(&mut body, &joined);
        }
        Ok(body)
    }

    /// The same with its secrets, for questions whose answer holds no text of it: masking costs a look at all records.
    pub(crate) fn exact_body(self) -> Result<Body> {
        Ok(self.body_of(&self.exact()?))
    }

    fn body_of(self, pieces: &[Vec<u8>]) -> Body {
        let mut pieces = pieces.iter().map(|piece| self.session.dialect().body(&sanitize::whole(piece)));
        let Some(first) = pieces.next() else { return Body::Other(serde_json::Value::Null) };
        let mut joiner = BodyJoiner::new(first);
        pieces.for_each(|piece| joiner.add(piece));
        joiner.finish()
    }

    /// How a call ended, if the record tells it after the result. See [`crate::dialect::Dialect::late_result`].
    pub(crate) fn late_result(self) -> Result<Option<ToolResult>> {
        let late = self.texts()?.iter().find_map(|text| self.session.dialect().late_result(text));
        match (&self.session.mask, late) {
            (Some(mask), Some(late)) => mask.late_result(self.session, late).map(Some),
            (_, late) => Ok(late),
        }
    }

    /// Whether it says that a person typed it. See [`crate::dialect::Dialect::is_typed`].
    pub(crate) fn is_typed(self) -> Result<bool> {
        Ok(self.texts()?.iter().any(|text| self.session.dialect().is_typed(text)))
    }

    /// How its calls ended after their results, with their secrets: for questions whose answer holds no text of it.
    pub(crate) fn exact_late_results(self) -> Result<Vec<ToolResult>> {
        let mut ended = Vec::new();
        for late in self.late_results() {
            let pieces = late.exact()?;
            ended.extend(pieces.iter().find_map(|piece| self.session.dialect().late_result(&sanitize::whole(piece))));
        }
        Ok(ended)
    }

    /// What the agent sends of it to the Gemini API: the contents of all fragments joined. See [`crate::dialect::Dialect::gemini_contents`].
    pub(crate) fn contents(self) -> Result<Option<Vec<serde_json::Value>>> {
        let texts = self.texts()?;
        let mut joined: Option<Vec<serde_json::Value>> = None;
        for piece in texts.iter().filter_map(|text| self.session.dialect().gemini_contents(text)) {
            let known = joined.get_or_insert_default();
            match (known.last_mut().and_then(|content| content.get_mut("parts")?.as_array_mut()), self.kind()) {
                (None, _) | (_, Kind::Compaction) => *known = piece,
                (Some(parts), _) => {
                    let mut more = piece;
                    let more = more.iter_mut().filter_map(|content| content.get_mut("parts")?.as_array_mut());
                    more.for_each(|more| parts.append(more));
                }
            }
        }
        Ok(joined)
    }

    /// The JSON of its fragments, as it is in the file, or without secrets if the session was opened so.
    pub fn raw(self) -> Result<Vec<Vec<u8>>> {
        let exact = self.exact()?;
        match &self.session.mask {
            Some(mask) => mask.pieces(self, exact),
            None => Ok(exact),
        }
    }

    /// Whether scrollback wrote this line of the native format: only its lines say which version they have.
    pub(crate) fn is_of_scrollback(self) -> bool {
        let lines = self.exact().unwrap_or_default();
        lines.iter().any(|line| memchr::memmem::find(line, br#""format":"#).is_some())
    }

    /// The JSON of its fragments, as it is in the file.
    pub(crate) fn exact(self) -> Result<Vec<Vec<u8>>> {
        let entries = self.session.derived.tree.entries_of(self.node);
        let read = |entry: &u32| {
            let Entry { place, hash, .. } = self.session.skeleton.entries[*entry as usize];
            self.session.files.read(place, hash)
        };
        entries.iter().map(read).collect()
    }

    fn texts(self) -> Result<Vec<String>> {
        Ok(self.raw()?.iter().map(|bytes| sanitize::whole(bytes).into_owned()).collect())
    }
}

impl std::fmt::Debug for RecordRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.id())
    }
}

impl PartialEq for RecordRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node && std::ptr::eq(self.session, other.session)
    }
}
