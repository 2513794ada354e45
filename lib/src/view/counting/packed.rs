//! [`SessionCounts`] as bytes, for an index: it has them for thousands of sessions, and reads all of them for one count.
//!
//! ```text
//! models  tools  origins  replays  files  requests  events          each list: how many, then its items
//! request: which of the optional numbers follow (2 bytes)  id (8 bytes)  time  tokens  cost  places
//! event:   its kind, and which of them follow (1 byte)     content (8 bytes)  time  numbers of its kind
//! ```
//!
//! A hash is eight bytes. Every other number is a `varint`, and a time or a place the difference to the one before it: facts are in
//! file order. What is no such list is damaged; whether it is the one that was stored, a checksum tells.

use super::{ABSURD_TOKENS, EventFact, EventKind, Origin, RequestCost, RequestFact, SessionCounts, Tokens};
use crate::model::record::{Cost, SessionId};
use crate::model::varint;

/// The bits of a request; the lowest five say which tokens are known.
const TOKENS: usize = 5;
const HAS_TIME: u16 = 1 << 5;
const HAS_MODEL: u16 = 1 << 6;
const HAS_ORIGIN: u16 = 1 << 7;
const IS_RECORDED: u16 = 1 << 8;
const IS_LISTED: u16 = 1 << 9;
const HAS_ABSURD: u16 = 1 << 10;

/// The bits of an event: its kind in the lowest two, then what is known, then three of the kind.
const KIND: u8 = 3;
const PROMPT: u8 = 0;
const ANSWER: u8 = 1;
const CALL: u8 = 2;
const COMPACTION: u8 = 3;
const EVENT_HAS_TIME: u8 = 1 << 2;
const EVENT_HAS_MODEL: u8 = 1 << 3;
const EVENT_HAS_ORIGIN: u8 = 1 << 4;
const IS_TURN: u8 = 1 << 5;
const IS_CLEAN: u8 = 1 << 6;
const HAS_THINKING: u8 = 1 << 7;
const HAS_FAILED: u8 = 1 << 5;
const IS_RETRY: u8 = 1 << 6;
const HAS_DURATION: u8 = 1 << 7;

/// The fewest bytes of an item, so that a damaged number of items reserves no more memory than there are bytes for.
const TEXT_BYTES: usize = 1;
const ORIGIN_BYTES: usize = 2;
const HASH_BYTES: usize = size_of::<u64>();
const REQUEST_BYTES: usize = 2 + HASH_BYTES + 3;
const EVENT_BYTES: usize = 1 + HASH_BYTES + 1;

impl SessionCounts {
    /// As they are stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        let SessionCounts { models, tools, origins, replays, requests, events, files } = self;
        let mut out = Packer::default();
        out.list(models, |model, out| out.text(model));
        out.list(tools, |tool, out| out.text(tool));
        out.list(origins, |Origin { dialect, session }, out| {
            out.list(dialect.as_slice(), |dialect, out| out.text(dialect));
            out.text(session.as_str());
        });
        out.list(replays, |session, out| out.text(session.as_str()));
        out.list(files, |file, out| out.hash(*file));
        out.list(requests, |request, out| out.request(request));
        out.before = Before::default();
        out.list(events, |event, out| out.event(event));
        out.bytes
    }

    /// What was stored; `None` if it is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Option<SessionCounts> {
        let mut left = Unpacker { bytes, before: Before::default(), files: 0 };
        let models = left.list(TEXT_BYTES, Unpacker::text)?;
        let tools = left.list(TEXT_BYTES, Unpacker::text)?;
        let origins = left.list(ORIGIN_BYTES, |left| {
            let mut dialects = left.list(TEXT_BYTES, Unpacker::text)?;
            let dialect = dialects.pop();
            dialects.is_empty().then_some(Origin { dialect, session: SessionId(left.text()?) })
        })?;
        let replays = left.list(TEXT_BYTES, |left| left.text().map(SessionId))?;
        let files = left.list(HASH_BYTES, Unpacker::hash)?;
        let requests = left.list(REQUEST_BYTES, Unpacker::request)?;
        (left.before, left.files) = (Before::default(), files.len());
        let events = left.list(EVENT_BYTES, Unpacker::event)?;
        left.bytes
            .is_empty()
            .then_some(SessionCounts { models, tools, origins, replays, requests, events, files })
    }
}

/// What the differences of the next fact are from.
#[derive(Default)]
struct Before {
    at: i64,
    line: u32,
    record: u32,
    events_before: u32,
    files_end: u32,
}

#[derive(Default)]
struct Packer {
    bytes: Vec<u8>,
    before: Before,
}

impl Packer {
    fn list<T>(&mut self, items: &[T], mut pack: impl FnMut(&T, &mut Packer)) {
        self.number(items.len() as u64);
        items.iter().for_each(|item| pack(item, self));
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn number(&mut self, number: impl Into<u64>) {
        varint::push(number.into(), &mut self.bytes);
    }

    fn hash(&mut self, hash: u64) {
        self.bytes.extend_from_slice(&hash.to_le_bytes());
    }

    fn time(&mut self, at: Option<i64>) {
        let Some(at) = at else { return };
        let difference = at.wrapping_sub(std::mem::replace(&mut self.before.at, at));
        self.number((difference << 1 ^ difference >> 63) as u64);
    }

    fn place(&mut self, place: u32, before: impl FnOnce(&mut Before) -> &mut u32) {
        let difference = place.wrapping_sub(std::mem::replace(before(&mut self.before), place)) as i32;
        self.number((difference << 1 ^ difference >> 31) as u32);
    }

    fn request(&mut self, request: &RequestFact) {
        let RequestFact { id, at, model, origin, tokens, cost, line, record, absurd, events_before } = *request;
        let tokens = tokens.counts();
        let known = tokens.iter().enumerate().map(|(place, count)| u16::from(count.is_some()) << place).sum::<u16>();
        let cost_bit = match cost {
            RequestCost::Unknown => 0,
            RequestCost::Recorded(_) => IS_RECORDED,
            RequestCost::Listed(_) => IS_LISTED,
        };
        let others = [
            (at.is_some(), HAS_TIME),
            (model.is_some(), HAS_MODEL),
            (origin.is_some(), HAS_ORIGIN),
            (absurd > 0, HAS_ABSURD),
        ];
        let bits = others.into_iter().filter(|(has, _)| *has).fold(known | cost_bit, |bits, (_, bit)| bits | bit);
        self.bytes.extend_from_slice(&bits.to_le_bytes());
        self.hash(id);
        self.time(at);
        model.into_iter().for_each(|model| self.number(model));
        origin.into_iter().for_each(|origin| self.number(origin));
        tokens.into_iter().flatten().for_each(|count| self.number(count));
        cost.known().into_iter().for_each(|cost| self.number(cost.nano_usd()));
        if absurd > 0 {
            self.number(absurd);
        }
        self.place(line, |before| &mut before.line);
        self.place(record, |before| &mut before.record);
        self.place(events_before, |before| &mut before.events_before);
    }

    fn event(&mut self, event: &EventFact) {
        let EventFact { content, at, model, origin, active_ms, ref kind } = *event;
        let of_kind: [(bool, u8); 3] = match kind {
            EventKind::Prompt { is_turn, is_clean, has_thinking } => {
                [(*is_turn, IS_TURN), (*is_clean, IS_CLEAN), (*has_thinking, HAS_THINKING)]
            }
            EventKind::Call { has_failed, is_retry, duration_ms, .. } => {
                [(*has_failed, HAS_FAILED), (*is_retry, IS_RETRY), (duration_ms.is_some(), HAS_DURATION)]
            }
            EventKind::Answer { .. } | EventKind::Compaction => Default::default(),
        };
        let known =
            [(at.is_some(), EVENT_HAS_TIME), (model.is_some(), EVENT_HAS_MODEL), (origin.is_some(), EVENT_HAS_ORIGIN)];
        let number = match kind {
            EventKind::Prompt { .. } => PROMPT,
            EventKind::Answer { .. } => ANSWER,
            EventKind::Call { .. } => CALL,
            EventKind::Compaction => COMPACTION,
        };
        let bits = known.into_iter().chain(of_kind).filter(|(has, _)| *has).fold(number, |bits, (_, bit)| bits | bit);
        self.bytes.push(bits);
        self.hash(content);
        self.time(at);
        model.into_iter().for_each(|model| self.number(model));
        origin.into_iter().for_each(|origin| self.number(origin));
        self.number(active_ms);
        match kind {
            EventKind::Answer { text_chars, thinking_chars } => {
                self.number(*text_chars);
                self.number(*thinking_chars);
            }
            EventKind::Call { tool, duration_ms, files, .. } => {
                self.number(*tool);
                duration_ms.iter().for_each(|duration| self.number(*duration));
                self.number(files.end.saturating_sub(files.start));
                if !files.is_empty() {
                    self.place(files.start, |before| &mut before.files_end);
                    self.before.files_end = files.end;
                }
            }
            EventKind::Prompt { .. } | EventKind::Compaction => {}
        }
    }
}

struct Unpacker<'b> {
    bytes: &'b [u8],
    before: Before,
    /// How many files calls can have changed.
    files: usize,
}

impl Unpacker<'_> {
    fn list<T>(&mut self, item_bytes: usize, mut unpack: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::try_from(self.number()?).ok()?;
        if count > self.bytes.len() / item_bytes {
            return None;
        }
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(unpack(self)?);
        }
        Some(items)
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, left) = self.bytes.split_at_checked(length)?;
        self.bytes = left;
        String::from_utf8(text.to_vec()).ok()
    }

    fn number(&mut self) -> Option<u64> {
        varint::take(&mut self.bytes)
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.number()?.try_into().ok()
    }

    fn hash(&mut self) -> Option<u64> {
        let (hash, left) = self.bytes.split_first_chunk()?;
        self.bytes = left;
        Some(u64::from_le_bytes(*hash))
    }

    fn time(&mut self) -> Option<i64> {
        let difference = self.number()?;
        let difference = (difference >> 1) as i64 ^ -((difference & 1) as i64);
        self.before.at = self.before.at.wrapping_add(difference);
        Some(self.before.at)
    }

    fn place(&mut self, before: impl FnOnce(&mut Before) -> &mut u32) -> Option<u32> {
        let difference: u32 = self.small()?;
        let difference = difference >> 1 ^ (difference & 1).wrapping_neg();
        let place = before(&mut self.before);
        *place = place.wrapping_add(difference);
        Some(*place)
    }

    /// What is there only if its bit is set.
    fn known<T>(&mut self, is_known: bool, unpack: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if is_known { unpack(self).map(Some) } else { Some(None) }
    }

    fn request(&mut self) -> Option<RequestFact> {
        let (bits, left) = self.bytes.split_first_chunk()?;
        self.bytes = left;
        let bits = u16::from_le_bytes(*bits);
        if bits >= HAS_ABSURD << 1 {
            return None;
        }
        let has = |bit: u16| bits & bit != 0;
        let id = self.hash()?;
        let at = self.known(has(HAS_TIME), Self::time)?;
        let model = self.known(has(HAS_MODEL), Self::small)?;
        let origin = self.known(has(HAS_ORIGIN), Self::small)?;
        let mut tokens = [None; TOKENS];
        for (place, count) in tokens.iter_mut().enumerate() {
            *count = self.known(has(1 << place), Self::number)?;
        }
        let cost = match (has(IS_RECORDED), has(IS_LISTED)) {
            (false, false) => RequestCost::Unknown,
            (true, false) => RequestCost::Recorded(Cost::from_nano_usd(self.number()?)),
            (false, true) => RequestCost::Listed(Cost::from_nano_usd(self.number()?)),
            (true, true) => return None,
        };
        let absurd = self.known(has(HAS_ABSURD), Self::small)?.unwrap_or(0);
        let line = self.place(|before| &mut before.line)?;
        let record = self.place(|before| &mut before.record)?;
        let events_before = self.place(|before| &mut before.events_before)?;
        let is_believed = tokens.iter().flatten().all(|count| *count <= ABSURD_TOKENS);
        let tokens = Tokens::new(tokens);
        is_believed.then_some(RequestFact { id, at, model, origin, tokens, cost, line, record, absurd, events_before })
    }

    fn event(&mut self) -> Option<EventFact> {
        let (bits, left) = self.bytes.split_first()?;
        let bits = *bits;
        self.bytes = left;
        let has = |bit: u8| bits & bit != 0;
        let content = self.hash()?;
        let at = self.known(has(EVENT_HAS_TIME), Self::time)?;
        let model = self.known(has(EVENT_HAS_MODEL), Self::small)?;
        let origin = self.known(has(EVENT_HAS_ORIGIN), Self::small)?;
        let active_ms = self.small()?;
        let kind = match bits & KIND {
            PROMPT => {
                EventKind::Prompt { is_turn: has(IS_TURN), is_clean: has(IS_CLEAN), has_thinking: has(HAS_THINKING) }
            }
            ANSWER => EventKind::Answer { text_chars: self.small()?, thinking_chars: self.small()? },
            CALL => {
                let tool = self.small()?;
                let duration_ms = self.known(has(HAS_DURATION), Self::number)?;
                let files = match self.small()? {
                    0 => 0..0,
                    count => {
                        let start = self.place(|before| &mut before.files_end)?;
                        let end = start.checked_add(count).filter(|end| *end as usize <= self.files)?;
                        self.before.files_end = end;
                        start..end
                    }
                };
                EventKind::Call { tool, has_failed: has(HAS_FAILED), is_retry: has(IS_RETRY), duration_ms, files }
            }
            _ => EventKind::Compaction,
        };
        Some(EventFact { content, at, model, origin, active_ms, kind })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    fn cost() -> impl Strategy<Value = RequestCost> {
        let amount = || any::<u64>().prop_map(Cost::from_nano_usd);
        let recorded = amount().prop_map(RequestCost::Recorded);
        prop_oneof![Just(RequestCost::Unknown), recorded, amount().prop_map(RequestCost::Listed)]
    }

    fn request() -> impl Strategy<Value = RequestFact> {
        let tokens = prop::array::uniform5(option::of(0..=ABSURD_TOKENS)).prop_map(Tokens::new);
        let names = (any::<u64>(), any::<Option<i64>>(), any::<Option<u16>>(), any::<Option<u8>>());
        let places = (any::<u32>(), any::<u32>(), any::<u8>(), any::<u32>());
        (names, tokens, cost(), places).prop_map(|((id, at, model, origin), tokens, cost, places)| {
            let (line, record, absurd, events_before) = places;
            RequestFact { id, at, model, origin, tokens, cost, line, record, absurd, events_before }
        })
    }

    fn kind() -> impl Strategy<Value = EventKind> {
        let prompt = any::<[bool; 3]>().prop_map(|[is_turn, is_clean, has_thinking]| EventKind::Prompt {
            is_turn,
            is_clean,
            has_thinking,
        });
        let answer =
            any::<[u32; 2]>().prop_map(|[text_chars, thinking_chars]| EventKind::Answer { text_chars, thinking_chars });
        let files = prop_oneof![Just(0..0), (0..9u32, 1..9u32).prop_map(|(start, count)| start..start + count)];
        let call = (any::<u16>(), any::<[bool; 2]>(), any::<Option<u64>>(), files).prop_map(
            |(tool, [has_failed, is_retry], duration_ms, files)| EventKind::Call {
                tool,
                has_failed,
                is_retry,
                duration_ms,
                files,
            },
        );
        prop_oneof![prompt, answer, call, Just(EventKind::Compaction)]
    }

    fn event() -> impl Strategy<Value = EventFact> {
        let known = (any::<u64>(), any::<Option<i64>>(), any::<Option<u16>>(), any::<Option<u8>>(), any::<u32>());
        (known, kind()).prop_map(|((content, at, model, origin, active_ms), kind)| EventFact {
            content,
            at,
            model,
            origin,
            active_ms,
            kind,
        })
    }

    fn counts() -> impl Strategy<Value = SessionCounts> {
        let names = || vec(".{0,4}", 0..3);
        let id = || ".{0,4}".prop_map(SessionId);
        let origin = (option::of(".{0,4}"), id()).prop_map(|(dialect, session)| Origin { dialect, session });
        let lists = (vec(request(), 0..4), vec(event(), 0..6), vec(any::<u64>(), 18));
        (names(), names(), vec(origin, 0..3), vec(id(), 0..3), lists).prop_map(
            |(models, tools, origins, replays, (requests, events, files))| SessionCounts {
                models,
                tools,
                origins,
                replays,
                requests,
                events,
                files,
            },
        )
    }

    proptest! {
        #[test]
        fn counts_are_read_back_and_damaged_ones_do_no_harm(
            counts in counts(),
            flips in vec((any::<prop::sample::Index>(), 1..=u8::MAX), 1..4),
        ) {
            let bytes = counts.to_bytes();
            prop_assert_eq!(SessionCounts::from_bytes(&bytes), Some(counts));
            for end in 0..bytes.len() {
                prop_assert_eq!(SessionCounts::from_bytes(&bytes[..end]), None);
            }
            prop_assert_eq!(SessionCounts::from_bytes(&[&bytes[..], &[0]].concat()), None);
            let mut damaged = bytes;
            for (at, flip) in flips {
                let at = at.index(damaged.len());
                damaged[at] ^= flip;
            }
            // A checksum tells what is damaged; here it is only not to panic, nor to take memory for what is not there.
            SessionCounts::from_bytes(&damaged);
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in vec(any::<u8>(), 0..200)) {
            SessionCounts::from_bytes(&bytes);
        }
    }

    #[test]
    fn a_number_of_items_that_cannot_be_there_reserves_no_memory() {
        let mut bytes = Vec::new();
        varint::push(u64::MAX, &mut bytes);
        assert_eq!(SessionCounts::from_bytes(&bytes), None);
        bytes.splice(0..0, [0; 5]);
        assert_eq!(SessionCounts::from_bytes(&bytes), None);
    }

    #[test]
    fn a_fact_is_small() {
        let sizes = (size_of::<RequestFact>(), size_of::<EventFact>());
        assert!(sizes.0 <= 80 && sizes.1 <= 72, "{sizes:?}");
    }
}
