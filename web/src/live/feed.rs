//! One session that is followed: one thread looks at its file, everybody who reads it looks at the board.
//!
//! ```text
//! file ─▶ thread (look) ─▶ board: messages in order, each with the offset of its last change ─▶ reader (plan) ─▶ fragments
//! ```
//!
//! A reader is a generation and an offset: it has not seen what changed behind that. So nothing is kept for a reader, a slow one only
//! gets the newest state of what it missed, and one that comes back says where it was.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use scrollback::model::Error;
use scrollback::session::{Branch, ReadOptions, RecordRef, Session, Source};
use scrollback::view::Conversation;
use scrollback::view::stream::{Begin, Growing, Refreshed, Watch, WatchBy, has_ended};
use tokio::sync::watch;

use super::fragment::Fragment;
use super::generations::Generations;
use super::locked;
use crate::site::Site;

/// How many messages of a large session are held at least: a page shows fewer.
const WINDOW_MESSAGES: usize = 200;

/// How many messages are sent again when a reader must begin anew.
const RESET_MESSAGES: usize = 1_000;

/// How long the thread waits for the system to report a change before it looks itself: what is written is seen within 100 ms on every
/// file system.
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// A session that grows all the time is looked at no more often than this, and never more than half of the time.
const SETTLE: Duration = Duration::from_millis(15);
const SETTLE_AT_MOST: Duration = Duration::from_millis(500);

/// How long nobody may read before the thread ends: a reader who comes back finds it still there.
const LINGER: Duration = Duration::from_secs(10);

/// How much memory the fragments of a session may take; others are rendered again when somebody needs them.
const FRAGMENTS_BYTES: usize = 8 * 1024 * 1024;

/// How many fragments are rendered before somebody asks for them.
const RENDERED_AT_ONCE: usize = 32;

/// How many times messages left the branch, as far as that is remembered. A reader who was away for longer begins anew.
const REMOVALS: usize = 256;

/// How many messages are planned for a reader at once: it may be slow.
const PLANNED: usize = 256;

/// How many looks are remembered with what they found.
const CHANGES: usize = 256;

/// Emojis on a message are told on that message: so many before one are rendered again.
const REACTED_TO: usize = 20;

/// A session that is followed.
pub(crate) struct Feed {
    site: Arc<Site>,
    generations: Arc<Generations>,
    pub(crate) source: Source,
    /// As in `/s/3f8a`.
    address: String,
    growing: Mutex<Growing>,
    board: Mutex<Board>,
    /// Says that the board has changed.
    news: watch::Sender<u64>,
    pub(super) readers: AtomicUsize,
}

/// What is known of the session now.
#[derive(Default)]
struct Board {
    /// Which file it is; empty before the first look.
    generation: String,
    /// How far it was read, or how often, if it is not appended to.
    offset: u64,
    /// What changed before this is not known.
    begin: u64,
    /// The branch is another one since this offset.
    reset_at: u64,
    items: Vec<Item>,
    /// The places of the messages that changed, by the offset that was reached: a reader who was there lately need not look at all.
    changes: VecDeque<(u64, Vec<usize>)>,
    /// When messages left the branch, and which.
    removed: VecDeque<(u64, Vec<String>)>,
    /// Records in file order at the first look: where each ends, and whether it is on the branch. Only the last one before an offset
    /// counts: it was the head then.
    heads: Vec<(u64, bool)>,
    /// Whether the last message is an answer that its agent has not ended.
    is_answering: bool,
    grown: Option<Instant>,
    /// The file is another one, and was gone again before it had a name.
    is_unnamed: bool,
    /// Why it cannot be read.
    failed: Option<String>,
}

struct Item {
    id: String,
    made_of: u64,
    /// The offset of its last change.
    mark: u64,
    /// The offset at which it appeared.
    born: u64,
    /// A number for what it says, if somebody has read it.
    content: Option<u64>,
    is_answer: bool,
    fragment: Option<Arc<Fragment>>,
}

/// How far a reader is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) generation: String,
    pub(crate) offset: u64,
}

impl Cursor {
    /// Reads `generation:offset`.
    pub(crate) fn parse(text: &str) -> Option<Cursor> {
        let (generation, offset) = text.trim().rsplit_once(':')?;
        Some(Cursor { generation: generation.to_owned(), offset: offset.parse().ok()? })
    }

    pub(crate) fn text(&self) -> String {
        format!("{}:{}", self.generation, self.offset)
    }
}

/// Something that a reader is told next.
#[derive(Clone)]
pub(crate) enum Step {
    /// Everything is different.
    Reset { reason: &'static str, is_last: bool },
    /// These are gone.
    Removed(Vec<String>),
    /// A message, and the one that it stands behind. `offset` is where the reader is then; without it, where it was.
    Message {
        id: String,
        after: Option<String>,
        offset: Option<u64>,
        /// What it is now: rendered, if somebody has needed it, and made of this.
        fragment: Option<Arc<Fragment>>,
        made_of: u64,
    },
}

/// What a reader missed, and where it is when it has seen all of it.
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) end: Cursor,
    /// Whether nothing is left then.
    pub(crate) is_all: bool,
}

impl Feed {
    pub(super) fn new(source: Source, address: String, site: Arc<Site>, generations: Arc<Generations>) -> Feed {
        let growing = Growing::new(source.clone(), Begin::Last(WINDOW_MESSAGES));
        Feed {
            site,
            generations,
            source,
            address,
            growing: Mutex::new(growing),
            board: Mutex::default(),
            news: watch::Sender::new(0),
            readers: AtomicUsize::new(0),
        }
    }

    /// Says when the board changes.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Looks at the file until nobody reads any more; `forget` says whether it may end then.
    pub(super) fn run(&self, forget: impl Fn() -> bool) {
        let mut watch = Watch::new(WatchBy::Events);
        let mut alone_since = None;
        loop {
            watch.file(&self.source.path);
            let began = Instant::now();
            if self.look() {
                // Whoever writes a thousand lines a second is looked at less often.
                std::thread::sleep(began.elapsed().clamp(SETTLE, SETTLE_AT_MOST));
            }
            match self.readers.load(Ordering::Acquire) {
                0 if alone_since.get_or_insert_with(Instant::now).elapsed() > LINGER && forget() => return,
                0 => {}
                _ => alone_since = None,
            }
            watch.wait_at_most(LOOK_EVERY);
        }
    }

    fn reading<T>(&self, with: impl FnOnce(&ReadOptions<'_>) -> T) -> T {
        let find = self.site.places.finder(&self.source);
        let mask = self.site.places.mask.as_ref();
        with(&ReadOptions { find: &find, mask, ..ReadOptions::plain((self.site.now)()) })
    }

    /// Looks at the file once; whether something is new.
    pub(crate) fn look(&self) -> bool {
        self.reading(|reading| {
            let mut growing = locked(&self.growing);
            let refreshed = growing.refresh(reading);
            let is_first = locked(&self.board).generation.is_empty();
            let change = match refreshed {
                Ok(Refreshed::Changed(change)) => change,
                Ok(Refreshed::Unchanged) => return false,
                Ok(Refreshed::Gone) if is_first => return self.fail("the session's file has been moved or deleted"),
                // It may come back: a log that is rotated does.
                Ok(Refreshed::Gone) => return false,
                Err(error) if is_first => return self.fail(&error.to_string()),
                Err(_) => return false,
            };
            let offset = growing.offset();
            let Some(session) = growing.session(reading) else { return false };
            let nothing = || Branch { records: Vec::new(), gaps: Vec::new(), cycle: Vec::new() };
            let branch = session.head().map_or_else(nothing, |head| session.branch(head));
            let conversation = Conversation::new(&branch);
            let is_other_file = change.is_some() && offset.is_some();
            let published = self.publish(session, &branch, &conversation, offset, is_first, is_other_file);
            if let Err(Error::Changed(_)) = published {
                // It was rewritten between two reads.
                growing.doubt();
            }
            true
        })
    }

    fn fail(&self, why: &str) -> bool {
        locked(&self.board).failed = Some(why.to_owned());
        self.news.send_modify(|version| *version += 1);
        false
    }

    fn publish(
        &self,
        session: &Session,
        branch: &Branch<'_>,
        conversation: &Conversation<'_, '_>,
        offset: Option<u64>,
        is_first: bool,
        is_other_file: bool,
    ) -> scrollback::Result<()> {
        let now: Vec<Now> = (0..conversation.len()).map(|at| Now::of(conversation, at)).collect();
        let (is_new_file, changed) = {
            let board = locked(&self.board);
            let is_new_file = is_first || is_other_file || board.is_unnamed;
            // Reading the last one shows whether the file still is what was read.
            (
                is_new_file,
                if is_new_file { (now.len().saturating_sub(1)..now.len()).collect() } else { board.changed(&now) },
            )
        };
        let newest = &changed[changed.len().saturating_sub(RENDERED_AT_ONCE)..];
        let rendered = Fragment::of_messages(session, branch, conversation, newest, &self.address, &self.site);
        let (rendered, outcome) = match rendered {
            Ok(rendered) => (rendered, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        let is_answer = conversation.len().checked_sub(1).and_then(|last| conversation.role(last));
        let is_answer = is_answer == Some(scrollback::Role::Assistant);
        let is_answering = is_answer && !has_ended(session, branch);
        let mut board = locked(&self.board);
        board.failed = None;
        if is_new_file {
            let generation = match (is_first, offset) {
                (true, Some(_)) => self.generations.of(&self.source),
                _ => self.generations.renew(&self.source),
            };
            let Some(generation) = generation else {
                board.is_unnamed = true;
                return Ok(());
            };
            board.begin_anew(generation, offset.unwrap_or(0), &now, session, branch);
        } else {
            let offset = offset.unwrap_or(board.offset + 1);
            board.grow(offset, &now, &rendered);
        }
        for fragment in rendered {
            board.keep(fragment);
        }
        board.is_answering = is_answering;
        board.grown = (!is_first).then(Instant::now).or(board.grown);
        board.forget_fragments();
        drop(board);
        self.news.send_modify(|version| *version += 1);
        outcome
    }

    /// Where the session is now; `Err` if it cannot be read, `None` before the first look.
    pub(crate) fn now(&self) -> Result<Option<Cursor>, String> {
        let board = locked(&self.board);
        match &board.failed {
            Some(why) => Err(why.clone()),
            None if board.generation.is_empty() => Ok(None),
            None => Ok(Some(board.now())),
        }
    }

    /// What a reader has missed.
    pub(crate) fn plan(&self, cursor: &Cursor) -> Plan {
        locked(&self.board).plan(cursor)
    }

    /// The answer at the end, if its agent has not ended it; and for how long we have seen it not grow.
    pub(crate) fn answering(&self) -> Option<(String, Option<Duration>)> {
        let board = locked(&self.board);
        let last = board.items.last().filter(|last| last.is_answer && board.is_answering)?;
        Some((last.id.clone(), board.grown.map(|grown| grown.elapsed())))
    }

    /// Whether the agent has ended its last answer.
    pub(crate) fn has_ended(&self) -> bool {
        let board = locked(&self.board);
        !board.is_answering && board.items.last().is_some_and(|last| last.is_answer)
    }

    /// Whether a message stands behind another one.
    pub(crate) fn is_behind(&self, id: &str, other: &str) -> bool {
        let board = locked(&self.board);
        let found = board.items.iter().rev().map(|item| item.id.as_str()).find(|item| *item == id || *item == other);
        found == Some(id)
    }

    /// The fragments of messages; those that are gone are left out. Reads and renders what nobody has rendered yet.
    pub(crate) fn fragments(&self, ids: &[String]) -> HashMap<String, Arc<Fragment>> {
        let (mut found, missing) = self.known_fragments(ids);
        if missing.is_empty() {
            return found;
        }
        let rendered = self.reading(|reading| {
            let mut growing = locked(&self.growing);
            let session = growing.session(reading)?;
            let branch = session.branch(session.head()?);
            let conversation = Conversation::new(&branch);
            let wanted: HashSet<&str> = missing.iter().map(String::as_str).collect();
            let places: Vec<usize> =
                (0..conversation.len()).filter(|at| wanted.contains(conversation.id(*at).as_str())).collect();
            let fragments = Fragment::of_messages(session, &branch, &conversation, &places, &self.address, &self.site);
            let fragments = match fragments {
                Err(Error::Changed(_)) => {
                    growing.doubt();
                    return None;
                }
                fragments => fragments.ok()?,
            };
            let mut board = locked(&self.board);
            fragments.iter().for_each(|fragment| board.keep(fragment.clone()));
            board.forget_fragments();
            Some(fragments)
        });
        let rendered = rendered.unwrap_or_default();
        found.extend(rendered.into_iter().map(|fragment| (fragment.message.id.clone(), fragment)));
        found
    }

    /// Those that are rendered already, and the ids of the others.
    pub(crate) fn known_fragments(&self, ids: &[String]) -> (HashMap<String, Arc<Fragment>>, Vec<String>) {
        let board = locked(&self.board);
        let wanted: HashSet<&str> = ids.iter().map(String::as_str).collect();
        let items = board.items.iter().rev().filter(|item| wanted.contains(item.id.as_str())).take(ids.len());
        let (mut found, mut missing) = (HashMap::new(), Vec::new());
        for item in items {
            match &item.fragment {
                Some(fragment) => _ = found.insert(item.id.clone(), fragment.clone()),
                None => missing.push(item.id.clone()),
            }
        }
        (found, missing)
    }
}

/// A message as it is now.
struct Now {
    id: String,
    made_of: u64,
    /// Where its last record ends.
    end: u64,
    is_answer: bool,
    is_reaction: bool,
}

impl Now {
    fn of(conversation: &Conversation<'_, '_>, at: usize) -> Now {
        let records = || conversation.records(at);
        Now {
            id: conversation.id(at),
            made_of: conversation.made_of(at),
            end: records().filter_map(RecordRef::end).max().unwrap_or(0),
            is_answer: conversation.role(at) == Some(scrollback::Role::Assistant),
            is_reaction: records().any(RecordRef::is_reaction),
        }
    }

    fn item(&self, mark: u64) -> Item {
        let (id, made_of, is_answer) = (self.id.clone(), self.made_of, self.is_answer);
        Item { id, made_of, mark, born: mark, content: None, is_answer, fragment: None }
    }
}

impl Board {
    fn now(&self) -> Cursor {
        Cursor { generation: self.generation.clone(), offset: self.offset }
    }

    fn begin_anew(&mut self, generation: String, offset: u64, now: &[Now], session: &Session, branch: &Branch<'_>) {
        let on_branch: HashSet<usize> = branch.records.iter().map(|record| record.order()).collect();
        let links = session.records().filter(|record| !record.is_sidechain() && !record.is_side());
        let heads = links.filter_map(|record| Some((record.end()?, on_branch.contains(&record.order()))));
        *self = Board {
            generation,
            offset,
            begin: offset,
            items: now.iter().map(|now| now.item(now.end.min(offset))).collect(),
            heads: heads.collect(),
            grown: self.grown,
            ..Board::default()
        };
        self.heads.sort_unstable_by_key(|(end, _)| *end);
    }

    /// The places of the messages that are made of something else than they were.
    fn changed(&self, now: &[Now]) -> Vec<usize> {
        let before: HashMap<&str, u64> = self.items.iter().map(|item| (item.id.as_str(), item.made_of)).collect();
        let is_changed = |at: &usize| before.get(now[*at].id.as_str()) != Some(&now[*at].made_of);
        (0..now.len()).filter(is_changed).collect()
    }

    /// Takes in what was appended; `read` are messages that were read anew.
    fn grow(&mut self, offset: u64, now: &[Now], read: &[Arc<Fragment>]) {
        let read: HashMap<&str, u64> =
            read.iter().map(|fragment| (fragment.message.id.as_str(), fragment.content)).collect();
        let before = std::mem::take(&mut self.items);
        // The window may begin earlier or later than it did.
        let earlier = before.first().and_then(|first| now.iter().position(|now| now.id == first.id));
        let later = now.first().and_then(|first| before.iter().position(|item| item.id == first.id));
        let (skipped, dropped) = match (earlier, later) {
            (Some(earlier), _) => (earlier, 0),
            (None, Some(later)) => (0, later),
            (None, None) => (0, 0),
        };
        let mut before = before.into_iter().skip(dropped).peekable();
        let mut items: Vec<Item> = now[..skipped].iter().map(|now| now.item(0)).collect();
        let mut changed = Vec::new();
        let mut rest = now[skipped..].iter().enumerate().map(|(at, now)| (at + skipped, now)).peekable();
        while let Some((at, now)) = rest.next_if(|(_, now)| before.peek().is_some_and(|item| item.id == now.id)) {
            let Some(item) = before.next() else { break };
            let says_the_same = item.content.is_some() && item.content == read.get(item.id.as_str()).copied();
            if item.made_of == now.made_of || says_the_same {
                items.push(Item { made_of: now.made_of, ..item });
            } else {
                items.push(Item { born: item.born, ..now.item(self.mark(now, offset)) });
                changed.push(at);
            }
        }
        let gone: Vec<String> = before.map(|item| item.id).collect();
        let has_new = rest.peek().is_some();
        let first_new = items.len();
        for (at, now) in rest {
            items.push(now.item(self.mark(now, offset)));
            changed.push(at);
        }
        // They are told in their order: so each has a greater offset than the one before it, whatever was written first.
        let mut next = offset + 1;
        for item in items[first_new..].iter_mut().rev() {
            item.mark = item.mark.min(next - 1).max(self.offset + 1);
            (item.born, next) = (item.mark, item.mark.max(1));
        }
        if !gone.is_empty() && has_new {
            // The conversation goes on from another place.
            self.reset_at = offset;
            self.removed.clear();
        } else if !gone.is_empty() {
            self.removed.push_back((offset, gone));
            if self.removed.len() > REMOVALS
                && let Some((at, _)) = self.removed.pop_front()
            {
                self.reset_at = self.reset_at.max(at);
            }
        }
        if let Some(reaction) = changed.iter().find(|at| now[**at].is_reaction) {
            let told: Vec<usize> = (reaction.saturating_sub(REACTED_TO)..*reaction).collect();
            for at in &told {
                (items[*at].mark, items[*at].fragment) = (offset, None);
            }
            changed.extend(told);
            changed.sort_unstable();
            changed.dedup();
        }
        if skipped + dropped > 0 {
            // The places are others now.
            self.changes.clear();
        }
        self.changes.push_back((self.offset, changed));
        if self.changes.len() > CHANGES {
            self.changes.pop_front();
        }
        (self.items, self.offset) = (items, offset);
    }

    /// The offset of a change: where the message's last record ends, if that is new.
    fn mark(&self, now: &Now, offset: u64) -> u64 {
        if now.end > self.offset && now.end <= offset { now.end } else { offset }
    }

    fn plan(&self, cursor: &Cursor) -> Plan {
        let end = self.now();
        let reason = if cursor.generation != self.generation {
            Some("generation")
        } else if cursor.offset > self.offset {
            Some("offset")
        } else if cursor.offset < self.reset_at || !self.was_on_branch(cursor.offset) {
            Some("head")
        } else {
            None
        };
        if let Some(reason) = reason {
            let from = self.items.len().saturating_sub(RESET_MESSAGES);
            let mut steps = vec![Step::Reset { reason, is_last: self.items.is_empty() }];
            let last = self.items.len().saturating_sub(1);
            steps.extend((from..self.items.len()).map(|at| self.step(at, (at == last).then_some(self.offset))));
            return Plan { steps, end, is_all: true };
        }
        let mut steps = Vec::new();
        let since = self.removed.iter().rev().take_while(|(at, _)| *at > cursor.offset).flat_map(|(_, ids)| ids);
        let mut removed: Vec<String> = since.cloned().collect();
        if !removed.is_empty() {
            // One may have come back.
            let there: HashSet<&str> = self.items.iter().map(|item| item.id.as_str()).collect();
            removed.retain(|id| !there.contains(id.as_str()));
        }
        if !removed.is_empty() {
            steps.push(Step::Removed(removed));
        }
        let missed: Vec<usize> = self.missed(cursor.offset);
        // A reader that is cut off after a message has seen everything up to the least offset of those that it has not.
        let mut least = u64::MAX;
        let mut offsets: Vec<u64> = Vec::new();
        for at in missed.iter().rev() {
            offsets.push(least);
            least = least.min(self.items[*at].mark);
        }
        offsets.reverse();
        let mut reached = cursor.offset;
        for (at, later) in missed.iter().zip(offsets) {
            reached = reached.max(self.items[*at].mark).min(later.saturating_sub(1));
            let is_last = later == u64::MAX;
            let offset = if is_last { self.offset } else { reached };
            steps.push(self.step(*at, (offset > cursor.offset).then_some(offset)));
            if steps.len() >= PLANNED && offset > cursor.offset && !is_last {
                // The rest is planned when these were taken.
                return Plan { steps, end: Cursor { offset, ..end }, is_all: false };
            }
        }
        Plan { steps, end, is_all: true }
    }

    /// The places of the messages that changed behind an offset, in the order of their changes; one that is new comes after those that it
    /// stands behind.
    fn missed(&self, offset: u64) -> Vec<usize> {
        // Each change is noted with the offset before it.
        let lately = self.changes.front().is_some_and(|(before, _)| *before <= offset);
        let mut places: Vec<usize> = match lately || offset == self.offset {
            true => {
                let since = self.changes.iter().rev().take_while(|(before, _)| *before >= offset);
                // The one that an offset in the middle belongs to, too.
                let first = self.changes.iter().rev().find(|(before, _)| *before < offset);
                since.chain(first).flat_map(|(_, places)| places.iter().copied()).collect()
            }
            false => (0..self.items.len()).collect(),
        };
        places.sort_unstable();
        places.dedup();
        let is_missed = |at: &usize| self.items.get(*at).is_some_and(|item| item.mark > offset);
        let mut reached = 0;
        let mut missed: Vec<(u64, usize)> = places
            .into_iter()
            .filter(is_missed)
            .map(|at| {
                let item = &self.items[at];
                if item.born > offset {
                    reached = item.mark.max(reached);
                    (reached, at)
                } else {
                    (item.mark, at)
                }
            })
            .collect();
        missed.sort_unstable();
        missed.into_iter().map(|(_, at)| at).collect()
    }

    fn step(&self, at: usize, offset: Option<u64>) -> Step {
        let after = at.checked_sub(1).map(|before| self.items[before].id.clone());
        let Item { id, made_of, fragment, .. } = &self.items[at];
        Step::Message { id: id.clone(), after, offset, fragment: fragment.clone(), made_of: *made_of }
    }

    /// Whether the branch of then is part of that at the first look: the last record before an offset was its head.
    fn was_on_branch(&self, offset: u64) -> bool {
        if offset >= self.begin {
            return true;
        }
        let next = self.heads.partition_point(|(end, _)| *end <= offset);
        // Nothing that is known was there: an empty file, or a place before the window.
        next.checked_sub(1).map_or(offset == 0, |last| self.heads[last].1)
    }

    /// Keeps a fragment, if it is of a message that is still there.
    fn keep(&mut self, fragment: Arc<Fragment>) {
        let item = self.items.iter_mut().rev().find(|item| item.id == fragment.message.id);
        if let Some(item) = item {
            item.content = Some(fragment.content);
            item.fragment = Some(fragment);
        }
    }

    fn forget_fragments(&mut self) {
        let mut room = FRAGMENTS_BYTES;
        for item in self.items.iter_mut().rev() {
            let Some(fragment) = &item.fragment else { continue };
            match room.checked_sub(fragment.bytes()) {
                Some(left) => room = left,
                None => (room, item.fragment) = (0, None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(id: &str, made_of: u64, end: u64) -> Now {
        Now { id: id.to_owned(), made_of, end, is_answer: false, is_reaction: false }
    }

    fn board(offset: u64, items: &[(&str, u64)]) -> Board {
        let items = items.iter().map(|(id, end)| now(id, 1, *end).item(*end)).collect();
        Board { generation: "g".to_owned(), offset, begin: offset, items, ..Board::default() }
    }

    fn told(board: &Board, offset: u64) -> Vec<String> {
        let plan = board.plan(&Cursor { generation: "g".to_owned(), offset });
        let shown = |step: &Step| match step {
            Step::Reset { reason, .. } => format!("reset {reason}"),
            Step::Removed(ids) => format!("removed {}", ids.join(" ")),
            Step::Message { id, offset, .. } => format!("{id}@{}", offset.map(|at| at.to_string()).unwrap_or_default()),
        };
        plan.steps.iter().map(shown).collect()
    }

    #[test]
    fn a_reader_gets_what_changed_behind_its_offset() {
        let mut board = board(20, &[("u1", 10), ("a1", 20)]);
        assert_eq!(told(&board, 20), Vec::<String>::new());
        board.grow(50, &[now("u1", 1, 10), now("a1", 2, 30), now("u2", 1, 40), now("a2", 1, 50)], &[]);
        assert_eq!(told(&board, 20), ["a1@30", "u2@40", "a2@50"]);
        assert_eq!(told(&board, 30), ["u2@40", "a2@50"]);
        assert_eq!(told(&board, 50), Vec::<String>::new());
        assert_eq!(told(&board, 51), ["reset offset", "u1@", "a1@", "u2@", "a2@50"]);
    }

    #[test]
    fn an_id_never_covers_a_message_that_comes_later() {
        let mut board = board(20, &[("u1", 10)]);
        // The result of the first answer is written after the next prompt.
        board.grow(50, &[now("u1", 1, 10), now("a1", 1, 50), now("u2", 1, 40)], &[]);
        assert_eq!(told(&board, 20), ["a1@39", "u2@50"]);
        assert_eq!(told(&board, 39), ["u2@50"]);
        // A result that is written late is told late.
        board.grow(80, &[now("u1", 1, 10), now("a1", 2, 70), now("u2", 1, 40), now("u3", 1, 60)], &[]);
        assert_eq!(told(&board, 50), ["u3@60", "a1@80"]);
        assert_eq!(told(&board, 60), ["a1@80"]);
        assert_eq!(told(&board, 39), ["u2@40", "u3@60", "a1@80"]);
        assert_eq!(told(&board, 20), ["a1@39", "u2@40", "u3@80"]);
    }

    #[test]
    fn messages_that_left_the_branch_are_removed_and_another_branch_is_a_new_beginning() {
        let mut board = board(20, &[("u1", 10), ("a1", 20)]);
        board.grow(30, &[now("u1", 1, 10)], &[]);
        assert_eq!(told(&board, 20), ["removed a1"]);
        assert_eq!(told(&board, 30), Vec::<String>::new());
        board.grow(40, &[now("u1", 1, 10), now("u2", 1, 40)], &[]);
        assert_eq!(told(&board, 20), ["removed a1", "u2@40"]);
        board.grow(50, &[now("u1", 1, 10), now("u3", 1, 50)], &[]);
        assert_eq!(told(&board, 40), ["reset head", "u1@", "u3@50"]);
    }
}
