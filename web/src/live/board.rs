//! What is known of a session that is followed: its messages in order, each with the offset of its last change, and what a reader that
//! was at an offset has missed.
//!
//! A reader is a generation and an offset: it has not seen what changed behind that. So nothing is kept for a reader, a slow one only
//! gets the newest state of what it missed, and one that comes back says where it was.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use scrollback::session::{Branch, RecordRef, Session};
use scrollback::view::Conversation;

use super::fragment::{Content, Fragment, hash_of};

/// How many messages are sent again when a reader must begin anew.
const RESET_MESSAGES: usize = 1_000;

/// How much memory the fragments of a session may take; others are rendered again when somebody needs them.
const FRAGMENTS_BYTES: usize = 8 * 1024 * 1024;

/// How many times messages left the branch, as far as that is remembered. A reader who was away for longer begins anew.
const REMOVALS: usize = 256;

/// How many states that messages no longer have are remembered. When there are more, whoever is not up to date begins anew.
const PAST_STATES: usize = 64 * 1024;

/// How many messages are planned for a reader at once: it may be slow.
const PLANNED: usize = 256;

/// How many looks are remembered with what they found.
const CHANGES: usize = 256;

/// What is known of the session now.
#[derive(Default)]
pub(super) struct Board {
    /// Which file it is; empty before the first look.
    pub(super) generation: String,
    /// How far it was read, or how often, if it is not appended to.
    pub(super) offset: u64,
    /// What changed before this is not known.
    begin: u64,
    /// Whoever was before this offset begins anew: the branch is another one since, or a message is again what it was then.
    reset_at: u64,
    pub(super) items: Vec<Item>,
    /// The places of the messages that changed, by the offset that was reached: a reader who was there lately need not look at all.
    changes: VecDeque<(u64, Vec<usize>)>,
    /// When messages left the branch, and which.
    removed: VecDeque<(u64, Vec<String>)>,
    /// What messages were and are no more (as numbers), and the offset since which they are not.
    past: HashMap<u64, u64>,
    /// Records in file order at the first look: where each ends, and whether it is on the branch. Only the last one before an offset
    /// counts: it was the head then.
    heads: Vec<(u64, bool)>,
    /// Whether the last message is an answer that its agent has not ended.
    pub(super) is_answering: bool,
    pub(super) grown: Option<Instant>,
    /// The file is another one, and was gone again before it had a name.
    pub(super) is_unnamed: bool,
    /// Since when there is no file.
    pub(super) gone: Option<Instant>,
    /// Why it cannot be read.
    pub(super) failed: Option<String>,
}

pub(super) struct Item {
    pub(super) id: String,
    made_of: u64,
    /// The offset of its last change, and that of the last change of its message: a page also shows what stands around it.
    mark: u64,
    said: u64,
    /// The offset at which it appeared.
    born: u64,
    /// What it says, if somebody has read it.
    content: Option<Content>,
    pub(super) is_answer: bool,
    pub(super) fragment: Option<Arc<Fragment>>,
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

    /// Where a reader is that was here and has taken a message; `None`: still here. Between two offsets it is nowhere in its file.
    pub(crate) fn after(&self, reached: Reached, generation: &str) -> Option<Cursor> {
        match reached {
            Reached::Nothing => None,
            Reached::Offset(offset) => Some(Cursor { generation: generation.to_owned(), offset }),
            Reached::Between => Some(Cursor { generation: format!("{generation}-between"), offset: self.offset }),
        }
    }
}

/// Something that a reader is told next.
#[derive(Clone)]
pub(crate) enum Step {
    /// Everything is different.
    Reset { reason: &'static str, is_last: bool },
    /// These are gone.
    Removed(Vec<String>),
    /// A message, and the one that it stands behind.
    Message {
        id: String,
        after: Option<String>,
        reached: Reached,
        /// What it is now: rendered, if somebody has needed it, and made of this.
        fragment: Option<Arc<Fragment>>,
        made_of: u64,
    },
}

/// Where a reader is when it has taken a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    /// Where it was.
    Nothing,
    /// It has seen everything up to this offset, and nothing else.
    Offset(u64),
    /// It has seen something from behind what it has not: if it is cut off here, it begins anew.
    Between,
}

/// What a reader missed, and where it is when it has seen all of it.
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) end: Cursor,
    /// Whether nothing is left then.
    pub(crate) is_all: bool,
}

/// What a reader wants of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    /// What the page shows.
    Page,
    /// The message alone.
    Message,
}

/// A message as it is now.
pub(super) struct Now {
    pub(super) id: String,
    made_of: u64,
    /// Where its last record ends.
    end: u64,
    is_answer: bool,
    pub(super) is_reaction: bool,
}

impl Now {
    pub(super) fn of(conversation: &Conversation<'_, '_>, at: usize) -> Now {
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
        Item { id, made_of, mark, said: mark, born: mark, content: None, is_answer, fragment: None }
    }
}

impl Board {
    pub(super) fn now(&self) -> Cursor {
        Cursor { generation: self.generation.clone(), offset: self.offset }
    }

    /// Takes in another file, or the first one.
    pub(super) fn begin_anew(
        &mut self,
        generation: String,
        offset: u64,
        now: &[Now],
        session: &Session,
        branch: &Branch<'_>,
    ) {
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

    /// The place of the message that was the last one, if a call of it has no result and something else follows it now.
    pub(super) fn open_at_end(&self, now: &[Now]) -> Option<usize> {
        let last = self.items.last()?;
        last.fragment.as_ref().filter(|fragment| fragment.has_open_call())?;
        let at = now.iter().rposition(|now| now.id == last.id)?;
        (at + 1 < now.len()).then_some(at)
    }

    /// Whether a call at the end is shown as running.
    pub(super) fn has_running_call(&self) -> bool {
        let last = self.items.last().and_then(|last| last.fragment.as_ref());
        last.is_some_and(|fragment| fragment.has_running_call())
    }

    /// The places of the messages that are made of something else than they were.
    pub(super) fn changed(&self, now: &[Now]) -> Vec<usize> {
        let before: HashMap<&str, u64> = self.items.iter().map(|item| (item.id.as_str(), item.made_of)).collect();
        let is_changed = |at: &usize| before.get(now[*at].id.as_str()) != Some(&now[*at].made_of);
        (0..now.len()).filter(is_changed).collect()
    }

    /// Takes in what was appended. `read` says of messages that were read anew what they say; those that something `is_around` anew may
    /// look different on the page.
    pub(super) fn grow(&mut self, offset: u64, now: &[Now], read: &HashMap<&str, Content>, is_around: &[usize]) {
        if self.past.len() > PAST_STATES {
            self.past.clear();
            self.reset_at = self.reset_at.max(self.offset);
        }
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
        let mut states = Vec::new();
        while let Some((at, now)) = rest.next_if(|(_, now)| before.peek().is_some_and(|item| item.id == now.id)) {
            let Some(item) = before.next() else { break };
            let content = read.get(now.id.as_str()).copied();
            let is_made_of_the_same = item.made_of == now.made_of;
            let looks_the_same = item.content.is_some() && item.content == content;
            if (is_made_of_the_same && !is_around.contains(&at)) || looks_the_same {
                items.push(Item { made_of: now.made_of, ..item });
                continue;
            }
            let said = |content: Option<Content>| content.map(|content| content.message);
            let differs = match item.content.is_some() && said(item.content) == said(content) {
                _ if is_made_of_the_same => Differs::Around,
                true => Differs::MadeOf,
                false => Differs::Message,
            };
            let mark = self.mark(now, offset);
            self.leave(&item, mark, differs);
            states.extend(states_of(&now.id, now.made_of, content, differs));
            let said = if differs == Differs::Message { mark } else { item.said };
            items.push(Item { said, born: item.born, content, ..now.item(mark) });
            changed.push(at);
        }
        let gone: Vec<Item> = before.collect();
        gone.iter().for_each(|item| self.leave(item, offset, Differs::Message));
        let has_new = rest.peek().is_some();
        let first_new = items.len();
        for (at, now) in rest {
            let content = read.get(now.id.as_str()).copied();
            states.extend(states_of(&now.id, now.made_of, content, Differs::Message));
            items.push(Item { content, ..now.item(self.mark(now, offset)) });
            changed.push(at);
        }
        // They are told in their order: so each has a greater offset than the one before it, whatever was written first.
        let mut next = offset + 1;
        for item in items[first_new..].iter_mut().rev() {
            item.mark = item.mark.min(next - 1).max(self.offset + 1);
            (item.said, item.born, next) = (item.mark, item.mark, item.mark.max(1));
        }
        if !gone.is_empty() && has_new {
            // The conversation goes on from another place.
            self.reset_at = offset;
            self.removed.clear();
            self.past.clear();
        } else if !gone.is_empty() {
            self.removed.push_back((offset, gone.into_iter().map(|item| item.id).collect()));
            if self.removed.len() > REMOVALS
                && let Some((at, _)) = self.removed.pop_front()
            {
                self.reset_at = self.reset_at.max(at);
            }
        }
        // A message is again what it was: who has not seen that it was something else, or gone, has it already.
        let again = states.iter().filter_map(|state| self.past.get(state)).max();
        self.reset_at = self.reset_at.max(again.copied().unwrap_or(0));
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

    /// Notes what a message is no more.
    fn leave(&mut self, item: &Item, since: u64, differs: Differs) {
        let states = states_of(&item.id, item.made_of, item.content, differs);
        self.past.extend(states.map(|state| (state, since)));
    }

    /// What a reader has missed.
    pub(super) fn plan(&self, cursor: &Cursor, wants: Wants) -> Plan {
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
            let reached = |at: usize| if at == last { Reached::Offset(self.offset) } else { Reached::Nothing };
            steps.extend((from..self.items.len()).map(|at| self.step(at, reached(at))));
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
        let missed: Vec<usize> = self.missed(cursor.offset, wants);
        // A reader that is cut off after a message has seen everything up to the least offset of those that it has not.
        let mut least = u64::MAX;
        let mut offsets: Vec<u64> = Vec::new();
        for at in missed.iter().rev() {
            offsets.push(least);
            least = least.min(self.items[*at].mark);
        }
        offsets.reverse();
        let (mut reached, mut sent) = (cursor.offset, 0);
        for (at, later) in missed.iter().zip(offsets) {
            let mark = self.items[*at].mark;
            sent = mark.max(sent);
            reached = reached.max(mark).min(later.saturating_sub(1));
            let is_last = later == u64::MAX;
            let offset = if is_last { self.offset } else { reached };
            let is_there = offset >= sent;
            steps.push(self.step(*at, if is_there { Reached::Offset(offset) } else { Reached::Between }));
            if steps.len() >= PLANNED && is_there && !is_last {
                // The rest is planned when these were taken.
                return Plan { steps, end: Cursor { offset, ..end }, is_all: false };
            }
        }
        Plan { steps, end, is_all: true }
    }

    /// The places of the messages that changed behind an offset, in the order of their changes; one that is new comes after those that it
    /// stands behind.
    fn missed(&self, offset: u64, wants: Wants) -> Vec<usize> {
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
        let mark = |item: &Item| if wants == Wants::Page { item.mark } else { item.said };
        let is_missed = |at: &usize| self.items.get(*at).is_some_and(|item| mark(item) > offset);
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

    fn step(&self, at: usize, reached: Reached) -> Step {
        let after = at.checked_sub(1).map(|before| self.items[before].id.clone());
        let Item { id, made_of, fragment, .. } = &self.items[at];
        Step::Message { id: id.clone(), after, reached, fragment: fragment.clone(), made_of: *made_of }
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
    pub(super) fn keep(&mut self, fragment: Arc<Fragment>) {
        let item = self.items.iter_mut().rev().find(|item| item.id == fragment.message.id);
        if let Some(item) = item {
            item.content = Some(fragment.content);
            item.fragment = Some(fragment);
        }
    }

    pub(super) fn forget_fragments(&mut self) {
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

/// How a message differs from what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Differs {
    /// Something else stands around it on the page.
    Around,
    /// It is made of something else, and says the same.
    MadeOf,
    /// It says something else, or was not there.
    Message,
}

/// Numbers for a message as it is: any of them that comes again means the same message.
fn states_of(id: &str, made_of: u64, content: Option<Content>, differs: Differs) -> impl Iterator<Item = u64> + '_ {
    let made_of = (differs != Differs::Around).then_some(made_of);
    let message = content.filter(|_| differs == Differs::Message).map(|content| content.message);
    let numbers = [made_of, content.map(|content| content.page), message];
    let named = numbers.into_iter().enumerate().filter_map(|(which, number)| Some((which, number?)));
    named.map(move |(which, number)| hash_of(&(id, which, number)))
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
        let plan = board.plan(&Cursor { generation: "g".to_owned(), offset }, Wants::Page);
        let shown = |step: &Step| match step {
            Step::Reset { reason, .. } => format!("reset {reason}"),
            Step::Removed(ids) => format!("removed {}", ids.join(" ")),
            Step::Message { id, reached: Reached::Offset(offset), .. } => format!("{id}@{offset}"),
            Step::Message { id, reached: Reached::Between, .. } => format!("{id}@-"),
            Step::Message { id, reached: Reached::Nothing, .. } => format!("{id}@"),
        };
        plan.steps.iter().map(shown).collect()
    }

    #[test]
    fn a_reader_gets_what_changed_behind_its_offset() {
        let mut board = board(20, &[("u1", 10), ("a1", 20)]);
        assert_eq!(told(&board, 20), Vec::<String>::new());
        board.grow(50, &[now("u1", 1, 10), now("a1", 2, 30), now("u2", 1, 40), now("a2", 1, 50)], &HashMap::new(), &[]);
        assert_eq!(told(&board, 20), ["a1@30", "u2@40", "a2@50"]);
        assert_eq!(told(&board, 30), ["u2@40", "a2@50"]);
        assert_eq!(told(&board, 50), Vec::<String>::new());
        assert_eq!(told(&board, 51), ["reset offset", "u1@", "a1@", "u2@", "a2@50"]);
    }

    #[test]
    fn an_id_never_covers_a_message_that_comes_later() {
        let mut board = board(20, &[("u1", 10)]);
        // The result of the first answer is written after the next prompt.
        board.grow(50, &[now("u1", 1, 10), now("a1", 1, 50), now("u2", 1, 40)], &HashMap::new(), &[]);
        assert_eq!(told(&board, 20), ["a1@39", "u2@50"]);
        assert_eq!(told(&board, 39), ["u2@50"]);
        // A result that is written late is told late.
        board.grow(80, &[now("u1", 1, 10), now("a1", 2, 70), now("u2", 1, 40), now("u3", 1, 60)], &HashMap::new(), &[]);
        assert_eq!(told(&board, 50), ["u3@60", "a1@80"]);
        assert_eq!(told(&board, 60), ["a1@80"]);
        assert_eq!(told(&board, 39), ["u2@40", "u3@60", "a1@80"]);
        assert_eq!(
            told(&board, 20),
            ["a1@-", "u2@-", "u3@80"],
            "the answer comes first, and is newer than what follows"
        );
    }

    #[test]
    fn messages_that_left_the_branch_are_removed_and_another_branch_is_a_new_beginning() {
        let mut board = board(20, &[("u1", 10), ("a1", 20)]);
        board.grow(30, &[now("u1", 1, 10)], &HashMap::new(), &[]);
        assert_eq!(told(&board, 20), ["removed a1"]);
        assert_eq!(told(&board, 30), Vec::<String>::new());
        board.grow(40, &[now("u1", 1, 10), now("u2", 1, 40)], &HashMap::new(), &[]);
        assert_eq!(told(&board, 20), ["removed a1", "u2@40"]);
        board.grow(50, &[now("u1", 1, 10), now("u3", 1, 50)], &HashMap::new(), &[]);
        assert_eq!(told(&board, 40), ["reset head", "u1@", "u3@50"]);
    }

    #[test]
    fn a_message_that_is_again_what_it_was_does_not_come_twice() {
        let (u1, a1) = (|| now("u1", 1, 10), || now("a1", 1, 20));
        let grow = |board: &mut Board, offset: u64, now: &[Now]| board.grow(offset, now, &HashMap::new(), &[]);
        // A branch is left and taken up again.
        let mut board = board(20, &[("u1", 10), ("a1", 20)]);
        grow(&mut board, 30, &[u1()]);
        grow(&mut board, 40, &[u1(), a1()]);
        assert_eq!(told(&board, 20), ["reset head", "u1@", "a1@40"], "it may have it");
        assert_eq!(told(&board, 30), ["a1@40"], "it has seen it go");
        assert_eq!(told(&board, 40), Vec::<String>::new());
        // It comes back as something else.
        grow(&mut board, 50, &[u1()]);
        grow(&mut board, 60, &[u1(), now("a1", 2, 60)]);
        assert_eq!(told(&board, 40), ["a1@60"]);
        // A message changes, and changes back.
        grow(&mut board, 70, &[u1(), now("a1", 3, 70)]);
        grow(&mut board, 80, &[u1(), now("a1", 2, 60)]);
        assert_eq!(told(&board, 60), ["reset head", "u1@", "a1@80"]);
        assert_eq!(told(&board, 70), ["a1@80"]);
    }

    #[test]
    fn a_reader_of_messages_gets_nothing_when_only_the_page_changes() {
        let content = |message: u64, page: u64| HashMap::from([("u1", Content { message, page })]);
        let mut board = board(10, &[("u1", 10)]);
        board.items[0].content = Some(Content { message: 1, page: 1 });
        let missed = |board: &Board, wants: Wants| {
            board.plan(&Cursor { generation: "g".to_owned(), offset: 10 }, wants).steps.len()
        };
        // An emoji on it, or a divider behind it.
        board.grow(20, &[now("u1", 1, 10)], &content(1, 2), &[0]);
        assert_eq!((missed(&board, Wants::Page), missed(&board, Wants::Message)), (1, 0));
        board.grow(30, &[now("u1", 2, 30)], &content(2, 3), &[]);
        assert_eq!((missed(&board, Wants::Page), missed(&board, Wants::Message)), (1, 1));
    }
}
