//! A session while it grows: what changed in its messages since the last look.
//!
//! ```text
//! bytes ─push─▶ Follower ─updates─▶ Update ─▶ Chunks ─▶ JSON       a reader of the AI SDK
//! file  ─look─▶ Growing  ─updates─▶ Update ─▶ text, JSON           a person
//! ```
//!
//! After each look, the messages sent so far are those that reading the whole file gives.

mod call;
mod chunks;
mod ended;
mod following;
mod growing;
mod watch;

pub use chunks::Chunks;
pub use ended::has_ended;
pub use following::{Following, Moved};
pub use growing::{Change, Growing, Look, Refreshed};
pub use watch::{Interrupter, Wake, Watch, WatchBy};

use hashbrown::HashSet;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::error::Result;
use crate::model::message::{Message, Role};
use crate::session::read::detect;
use crate::session::read::files::Contents;
use crate::session::read::open::ReadOptions;
use crate::session::{Branch, Session};
use crate::view::conversation::Conversation;

/// What changed in the messages of a session's newest branch.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// A message as it is now: it takes the place of the one with its id, or follows the last.
    Message(Box<Message>),
    /// These are no longer on the branch: the conversation was rewound, or the file was cut.
    Removed(Vec<String>),
}

/// Where following starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At the first message.
    Everything,
    /// At the last messages that exist at the first look.
    Last(usize),
    /// At the first message that has a record at or after this byte of the file, and the prompt that it answers.
    At(u64),
}

/// Follows a session as bytes are added to it.
///
/// ```
/// use scrollback::dialect;
/// use scrollback::session::ReadOptions;
/// use scrollback::view::stream::{Begin, Follower, Update};
///
/// let native = dialect::named("native").expect("it is built in");
/// let reading = ReadOptions::plain(jiff::Timestamp::UNIX_EPOCH);
/// let mut follower = Follower::of_bytes(native, Begin::Everything, &reading);
/// follower.push(br#"{"role":"user","content":"Two and "#, &reading);
/// assert!(follower.updates(&reading)?.is_empty(), "half a line is not a message");
///
/// follower.push(b"two?\"}\n", &reading);
/// assert!(matches!(&follower.updates(&reading)?[..], [Update::Message(_)]));
/// # Ok::<(), scrollback::model::Error>(())
/// ```
pub struct Follower {
    session: Session,
    /// Whether more bytes may show another dialect.
    guessed: bool,
    begin: Begin,
    has_begun: bool,
    /// Ids of the messages before the first one that is sent.
    hidden: HashSet<String>,
    /// The messages that were sent, in order.
    sent: Vec<Sent>,
}

/// A message that was sent.
#[derive(Clone)]
struct Sent {
    id: String,
    /// Hashes of the records it was made of, and of its content: the second is computed only if the first changed.
    made_of: u64,
    content: u64,
}

impl Follower {
    /// Follows a session from its current state on.
    pub fn new(session: Session, begin: Begin) -> Follower {
        Follower { session, guessed: false, begin, has_begun: false, hidden: HashSet::new(), sent: Vec::new() }
    }

    /// Follows bytes that are yet to come.
    pub fn of_bytes(
        dialect: &'static dyn crate::dialect::Dialect,
        begin: Begin,
        reading: &ReadOptions<'_>,
    ) -> Follower {
        Follower::new(Session::from_bytes(dialect, Vec::new(), reading), begin)
    }

    /// Follows bytes that are yet to come, and detects their dialect.
    pub fn guessing(begin: Begin, reading: &ReadOptions<'_>) -> Follower {
        Follower { guessed: true, ..Follower::of_bytes(detect::of_bytes(&[]), begin, reading) }
    }

    /// Takes in appended bytes, cut anywhere. This costs no more than reading them.
    pub fn push(&mut self, appended: &[u8], reading: &ReadOptions<'_>) {
        self.session.append(appended, reading);
    }

    /// Continues with another reading of the same session: its file was rewritten, or is not appended to.
    pub fn replace(&mut self, session: Session) {
        if session.dialect().name() != self.session.dialect().name() {
            // The same records may mean something else now.
            self.sent.iter_mut().for_each(|sent| sent.made_of = !sent.made_of);
        }
        self.session = session;
    }

    /// The session as it is now.
    pub fn session(&mut self, reading: &ReadOptions<'_>) -> &Session {
        if self.guessed {
            self.guess_again(reading);
        }
        self.session.settle(reading);
        &self.session
    }

    /// The first lines of several dialects look alike: with more of them, the guess is better.
    fn guess_again(&mut self, reading: &ReadOptions<'_>) {
        let contents = self.session.files.0.first().map(|file| &file.contents);
        let Some(Contents::Memory(bytes)) = contents else { return };
        let guess = detect::guess_bytes(bytes);
        self.guessed = !guess.settled;
        if guess.dialect.name() != self.session.dialect().name() {
            self.replace(Session::from_bytes(guess.dialect, bytes.clone(), reading));
        }
    }

    /// What changed since the last look. The cost grows with the number of records: look after bytes have come, not at each byte.
    ///
    /// After an error nothing counts as sent, and the next look returns it.
    pub fn updates(&mut self, reading: &ReadOptions<'_>) -> Result<Vec<Update>> {
        self.session(reading);
        let nothing = || Branch { records: Vec::new(), gaps: Vec::new(), cycle: Vec::new() };
        let branch = self.session.head().map_or_else(nothing, |head| self.session.branch(head));
        let conversation = Conversation::new(&branch);
        let ids: Vec<String> = (0..conversation.len()).map(|at| conversation.id(at)).collect();
        let (hidden, first) = self.hide(&ids, &conversation);
        let known = self.still_in_sight(&ids[first..]);
        let common = known.iter().zip(&ids[first..]).take_while(|(sent, id)| sent.id == **id).count();
        let mut updates = Vec::new();
        if common < known.len() {
            updates.push(Update::Removed(known[common..].iter().map(|sent| sent.id.clone()).collect()));
        }
        let mut sent = Vec::with_capacity(ids.len() - first);
        for (at, id) in ids.iter().enumerate().skip(first) {
            let before = known.get(at - first).filter(|_| at - first < common);
            let made_of = conversation.made_of(at);
            let content = match before.filter(|before| before.made_of == made_of) {
                Some(unchanged) => unchanged.content,
                None => {
                    let Some(message) = conversation.message(at).transpose()? else { break };
                    let content = serde_json::to_vec(&message).map_or(0, |json| xxh3_64(&json));
                    if before.is_none_or(|before| before.content != content) {
                        updates.push(Update::Message(Box::new(message)));
                    }
                    content
                }
            };
            sent.push(Sent { id: id.clone(), made_of, content });
        }
        self.hidden.extend(hidden);
        (self.sent, self.has_begun) = (sent, true);
        Ok(updates)
    }

    /// The messages that become hidden, and the position of the first one that is sent.
    fn hide(&self, ids: &[String], conversation: &Conversation<'_, '_>) -> (Vec<String>, usize) {
        let sent: HashSet<&str> = self.sent.iter().map(|sent| sent.id.as_str()).collect();
        let known = ids.iter().position(|id| self.hidden.contains(id) || sent.contains(id.as_str()));
        let before = match (self.begin, known) {
            (Begin::Everything, _) => 0,
            (Begin::Last(count), _) if !self.has_begun => conversation.page_start(ids.len(), count).unwrap_or(0),
            (Begin::At(offset), _) if !self.has_begun => {
                let is_new = |at: &usize| conversation.records(*at).any(|record| record.ends_after(offset));
                let first = (0..ids.len()).find(is_new).unwrap_or(ids.len());
                let answers = |prompt: &usize| {
                    conversation.role(first) == Some(Role::Assistant) && conversation.role(*prompt) == Some(Role::User)
                };
                first.checked_sub(1).filter(answers).unwrap_or(first)
            }
            // The file may have been read from an earlier place on than it was.
            (Begin::Last(_) | Begin::At(_), Some(known)) => known,
            (Begin::Last(count), None) if !self.session.whole() => ids.len().saturating_sub(count.max(1)),
            (Begin::At(_), None) if !self.session.whole() => ids.len().saturating_sub(1),
            _ => 0,
        };
        let hidden = ids.iter().skip(before).take_while(|id| self.hidden.contains(*id)).count();
        (ids[..before].to_vec(), before + hidden)
    }

    /// Whether the last message has the calls of its results. In a window they may come before it.
    pub(crate) fn has_its_calls(&mut self, reading: &ReadOptions<'_>) -> bool {
        let session = self.session(reading);
        let Some(head) = session.head().filter(|_| !session.whole()) else { return true };
        let branch = session.branch(head);
        let conversation = Conversation::new(&branch);
        conversation.len().checked_sub(1).is_none_or(|last| conversation.has_its_calls(last))
    }

    /// The messages that were sent, without those before the window.
    fn still_in_sight(&self, ids: &[String]) -> &[Sent] {
        let first = ids.first().filter(|_| !self.session.whole());
        let before = first.and_then(|first| self.sent.iter().position(|sent| sent.id == *first));
        &self.sent[before.unwrap_or(0)..]
    }
}
