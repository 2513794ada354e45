//! One session that is followed: one thread looks at its file, everybody who reads it looks at the board.
//!
//! ```text
//! file ─▶ thread (look) ─▶ board: messages in order, each with the offset of its last change ─▶ reader (plan) ─▶ fragments
//! ```
//!
//! The board is `board.rs`.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use scrollback::model::Error;
use scrollback::model::Part;
use scrollback::session::{Branch, ReadOptions, Session, Source};
use scrollback::view::Conversation;
use scrollback::view::reactions::Reaction;
use scrollback::view::stream::{Begin, Growing, Refreshed, Watch, WatchBy, has_ended};
use tokio::sync::watch;

use super::board::{Board, Cursor, Now, Plan, Wants};
use super::fragment::Fragment;
use super::generations::Generations;
use super::locked;
use crate::catalogue::Entry;
use crate::pages::home::{RUNNING_TIME, is_running};
use crate::site::Site;

/// How many messages of a large session are held at least: a page shows fewer.
const WINDOW_MESSAGES: usize = 200;

/// How long the thread waits for the system to report a change before it looks itself: what is written is seen within 100 ms on every
/// file system.
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// A session that grows all the time is looked at no more often than this, and never more than half of the time.
const SETTLE: Duration = Duration::from_millis(15);
const SETTLE_AT_MOST: Duration = Duration::from_millis(500);

/// How long nobody may read before the thread ends: a reader who comes back finds it still there.
const LINGER: Duration = Duration::from_secs(10);

/// A file that is not there for so long is deleted: one that is rotated or replaced comes back sooner.
const DELETED_AFTER: Duration = Duration::from_secs(5);

/// How many fragments are rendered before somebody asks for them.
const RENDERED_AT_ONCE: usize = 32;

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
            self.give_up_deleted();
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
                Ok(Refreshed::Unchanged) => return self.end_running_call(&mut growing, reading),
                Ok(Refreshed::Gone) if is_first => return self.fail("the session's file has been moved or deleted"),
                Ok(Refreshed::Gone) => {
                    locked(&self.board).gone = Some(Instant::now());
                    return false;
                }
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

    /// Shows a call at the end as one without a result when its agent is not at work any more; whether it was shown as running. Nothing
    /// is written when an agent is killed, so the place behind the file's last byte stands for it.
    fn end_running_call(&self, growing: &mut Growing, reading: &ReadOptions<'_>) -> bool {
        if !locked(&self.board).has_running_call() || self.is_running() {
            return false;
        }
        let Some(session) = growing.session(reading) else { return false };
        let Some(head) = session.head() else { return false };
        let branch = session.branch(head);
        let conversation = Conversation::new(&branch);
        let last: Vec<usize> = conversation.len().checked_sub(1).into_iter().collect();
        let rendered = Fragment::of_messages(session, &branch, &conversation, &last, false, &self.address, &self.site);
        let rendered = match rendered {
            Ok(rendered) => rendered,
            Err(Error::Changed(_)) => {
                growing.doubt();
                return false;
            }
            Err(_) => return false,
        };
        let now: Vec<Now> = (0..conversation.len()).map(|at| Now::of(&conversation, at)).collect();
        let read = rendered.iter().map(|fragment| (fragment.message.id.as_str(), fragment.content)).collect();
        let mut board = locked(&self.board);
        let offset = board.offset + 1;
        board.grow(offset, &now, &read, &last);
        for fragment in rendered {
            board.keep(fragment);
        }
        drop(board);
        self.news.send_modify(|version| *version += 1);
        true
    }

    /// Tells the readers of a file that does not come back.
    fn give_up_deleted(&self) {
        let is_deleted = {
            let board = locked(&self.board);
            board.failed.is_none() && board.gone.is_some_and(|since| since.elapsed() > DELETED_AFTER)
        };
        if is_deleted {
            self.fail("the session's file has been moved or deleted");
        }
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
        let (is_new_file, mut changed) = {
            let board = locked(&self.board);
            let is_new_file = is_first || is_other_file || board.is_unnamed;
            // Reading the last one shows whether the file still is what was read.
            (
                is_new_file,
                if is_new_file { (now.len().saturating_sub(1)..now.len()).collect() } else { board.changed(&now) },
            )
        };
        // A call that was running is not, as soon as something else follows.
        let left_open: Vec<usize> = match is_new_file {
            true => Vec::new(),
            false => locked(&self.board).open_at_end(&now).into_iter().collect(),
        };
        let reactions: Vec<usize> = changed.iter().copied().filter(|at| now[*at].is_reaction).collect();
        let mut around = reacted_to(&reactions, session, conversation);
        around.extend(left_open);
        changed.extend(&around);
        changed.sort_unstable();
        changed.dedup();
        let newest = &changed[changed.len().saturating_sub(RENDERED_AT_ONCE)..];
        let rendered = Fragment::of_messages(
            session,
            branch,
            conversation,
            newest,
            !is_first || self.is_running(),
            &self.address,
            &self.site,
        );
        let (rendered, outcome) = match rendered {
            Ok(rendered) => (rendered, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        let is_answer = conversation.len().checked_sub(1).and_then(|last| conversation.role(last));
        let is_answer = is_answer == Some(scrollback::Role::Assistant);
        let is_answering = is_answer && !has_ended(session, branch);
        let mut board = locked(&self.board);
        (board.failed, board.gone) = (None, None);
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
            let read = rendered.iter().map(|fragment| (fragment.message.id.as_str(), fragment.content)).collect();
            board.grow(offset, &now, &read, &around);
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
    pub(crate) fn plan(&self, cursor: &Cursor, wants: Wants) -> Plan {
        locked(&self.board).plan(cursor, wants)
    }

    /// The answer at the end, if its agent has not ended it; and for how long we have seen it not grow.
    pub(crate) fn answering(&self) -> Option<(String, Option<Duration>)> {
        let board = locked(&self.board);
        let last = board.items.last().filter(|last| last.is_answer && board.is_answering)?;
        Some((last.id.clone(), board.grown.map(|grown| grown.elapsed())))
    }

    /// Whether an agent is at work in the session: we saw it grow, or the list says so.
    fn is_running(&self) -> bool {
        let grown = locked(&self.board).grown;
        grown.is_some_and(|grown| grown.elapsed() <= RUNNING_TIME) || {
            let shelf = self.site.catalogue.shelf();
            let is_this = |entry: &&Entry| entry.source.path == self.source.path;
            shelf.entries.iter().find(is_this).is_some_and(|entry| is_running(entry, (self.site.now)()))
        }
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
            let is_running = self.is_running();
            let fragments =
                Fragment::of_messages(session, &branch, &conversation, &places, is_running, &self.address, &self.site);
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

/// The places of the messages that reactions are about: the page tells emojis there.
fn reacted_to(reactions: &[usize], session: &Session, conversation: &Conversation<'_, '_>) -> Vec<usize> {
    let mut places = Vec::new();
    for at in reactions {
        let Some(Ok(message)) = conversation.message(*at) else { continue };
        let targets = message.parts.iter().filter_map(|part| match part {
            Part::Data(data) if data.kind == "reaction" => Some(Reaction::read(&data.data)?.target),
            _ => None,
        });
        let records = targets.filter_map(|target| session.find(target).ok());
        places.extend(records.filter_map(|record| conversation.position(record)));
    }
    places
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::sync::atomic::AtomicI64;

    use jiff::Timestamp;

    use super::*;
    use crate::catalogue::{Found, list_and_count};
    use crate::live::board::Step;

    const PROMPT: &str = r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","timestamp":"2026-11-01T10:00:00Z","format":2,"context":{"cwd":"/w"},"message":{"role":"user","content":"hello"}}"#;
    const CALL: &str = r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s1","timestamp":"2026-11-01T10:00:01Z","format":2,"context":{"cwd":"/w"},"message":{"role":"assistant","content":"","toolCalls":[{"id":"c1","name":"bash","arguments":{"command":"sleep 9"}}]}}"#;
    const RESULT: &str = r#"{"type":"tool_result","uuid":"r1","parentUuid":"a1","sessionId":"s1","timestamp":"2026-11-01T10:20:00Z","format":2,"toolCallId":"c1","result":"slept","content":"slept"}"#;

    #[test]
    fn a_running_call_ends_when_nothing_is_written_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".sage/sessions/s1/messages.jsonl");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("{PROMPT}\n{CALL}\n")).unwrap();
        let began: Timestamp = "2026-11-01T10:00:00Z".parse().unwrap();
        let second = Arc::new(AtomicI64::new(began.as_second() + 300));
        let clock = second.clone();
        let site =
            Arc::new(Site::of_test(folder.path(), move || Timestamp::new(clock.load(Ordering::Relaxed), 0).unwrap()));
        list_and_count(&site);
        let shelf = site.catalogue.shelf();
        let Found::One(entry) = shelf.find("s1") else { panic!("it is not listed") };
        let feed = Feed::new(entry.source.clone(), "/s/s1".to_owned(), site.clone(), Arc::new(Generations::new()));
        let html = || String::from_utf8(feed.fragments(&["a1".to_owned()])["a1"].html().to_vec()).unwrap();
        assert!(feed.look());
        assert!(html().contains("tool-run"), "{}", html());
        assert!(!feed.look(), "nothing is new");
        let running = feed.now().unwrap().unwrap();
        second.fetch_add(600, Ordering::Relaxed);
        assert!(feed.look());
        assert!(!feed.look(), "it is said once");
        assert!(!html().contains("tool-run"), "{}", html());
        let ids = |plan: Plan| -> Vec<String> {
            let id = |step| if let Step::Message { id, .. } = step { id } else { "reset".to_owned() };
            plan.steps.into_iter().map(id).collect()
        };
        assert_eq!(ids(feed.plan(&running, Wants::Page)), ["a1"]);
        assert_eq!(ids(feed.plan(&running, Wants::Message)), Vec::<String>::new(), "the message is the same");
        // It was only slow.
        let ended = feed.now().unwrap().unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        writeln!(file, "{RESULT}").unwrap();
        assert!(feed.look());
        assert_eq!(ids(feed.plan(&ended, Wants::Message)), ["a1"]);
        assert!(html().contains("slept"), "{}", html());
    }
}
