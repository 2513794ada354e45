//! What each session can add to a count, from the index where its files are unchanged.

use hashbrown::HashMap;
use rayon::prelude::*;
use scrollback::view::SessionRow;
use scrollback::view::counting::{CountedSession, SessionCounts};
use scrollback::{Error as ReadError, Session, Source};
use xxhash_rust::xxh3::xxh3_64;

use crate::archive::{Archive, Reader};
use crate::card::Depth;
use crate::checked::{with_sum, without_sum};
use crate::decoded::decoded;
use crate::index::SourceId;
use crate::prices::{self, PRICES};

/// What an index stores of a session for counting, and the stamp of its files then.
#[derive(Debug, Clone)]
pub struct StoredCounts {
    /// The stamp of its files.
    pub stamp: u64,
    /// What [`SessionCounts`] is as bytes, with the list of prices.
    pub bytes: Vec<u8>,
}

/// Sessions that can be counted.
#[derive(Default)]
pub struct Counted {
    /// In the order in which they came.
    pub sessions: Vec<CountedSession>,
    /// The files of the sessions, in the same order.
    pub sources: Vec<Source>,
    /// Those that could not be read.
    pub unreadable: Vec<ReadError>,
}

impl Archive {
    /// What sessions can add to a count. Those that [`Archive::describe`] has just found unchanged are not read again.
    pub fn count(
        &mut self,
        sessions: Vec<(Box<SessionRow>, Source)>,
        is_in_scope: &(dyn Fn(&SessionRow) -> bool + Sync),
        on_counted: &(dyn Fn() + Sync),
    ) -> Counted {
        let all = self.known();
        // What is missing elsewhere leaves what is known of a session as it was, or changes the files that it is read from.
        let known_of = |(row, source): &(Box<SessionRow>, Source)| {
            let known = self.holding(&all, source, Depth::Ends).filter(|_| !row.base_is_missing);
            known.map(|known| (known.id, known.stamp))
        };
        let known: Vec<Option<(SourceId, u64)>> = sessions.iter().map(known_of).collect();
        let wanted: HashMap<SourceId, u64> = known.iter().copied().flatten().collect();
        let stored = self.ask(|index| {
            let read = |each: &mut dyn FnMut(_)| {
                index.each_counts(&mut |id, StoredCounts { stamp, bytes }| {
                    if wanted.get(&id) == Some(&stamp) {
                        each((id, bytes));
                    }
                })
            };
            decoded(read, |(id, bytes): (SourceId, Vec<u8>)| Some((id, from_bytes(&bytes)?)))
        });
        let mut stored: HashMap<SourceId, SessionCounts> = stored.unwrap_or_default().into_iter().collect();
        let stored: Vec<_> = known.iter().map(|known| stored.remove(&(*known)?.0)).collect();
        let (places, now) = (self.places.clone(), self.now);
        let reader = Reader { places: &places, now };
        let count = |(((row, source), known), stored): ((&(Box<SessionRow>, Source), _), Option<SessionCounts>)| {
            let (counts, learned) = match stored {
                Some(counts) => (Ok(counts), None),
                None => {
                    let stamp = source.stamp();
                    let counts = reader.session(source, None).and_then(|session| priced(&session));
                    // What was appended in the meantime is counted next time.
                    let known: Option<(SourceId, u64)> = known;
                    let known = known.filter(|(_, known)| Some(*known) == stamp);
                    let learned = |((id, stamp), counts)| (id, StoredCounts { stamp, bytes: to_bytes(counts) });
                    let learned = known.zip(counts.as_ref().ok()).map(learned);
                    (counts, learned)
                }
            };
            on_counted();
            (counts, is_in_scope(row), learned)
        };
        let done: Vec<_> = sessions.par_iter().zip(known).zip(stored).map(count).collect();
        let (mut counted, mut learned) = (Counted::default(), HashMap::new());
        for ((row, source), (counts, is_in_scope, stored)) in sessions.into_iter().zip(done) {
            match counts {
                Ok(counts) => {
                    counted.sessions.push(CountedSession { row, counts, is_in_scope });
                    counted.sources.push(source);
                }
                Err(error) => counted.unreadable.push(error),
            }
            learned.extend(stored);
        }
        if !learned.is_empty() {
            self.ask(|index| index.store_counts(learned));
        }
        counted
    }
}

/// What a session can add to a count, as an index stores it.
pub(crate) fn counted(session: &Session) -> scrollback::Result<Vec<u8>> {
    Ok(to_bytes(&priced(session)?))
}

fn priced(session: &Session) -> scrollback::Result<SessionCounts> {
    let mut counts = SessionCounts::of(session)?;
    prices::price(&mut counts);
    Ok(counts)
}

/// The hash of the list of prices, and the counts.
fn to_bytes(counts: &SessionCounts) -> Vec<u8> {
    with_sum([&list_of_prices()[..], &counts.to_bytes()].concat())
}

/// Whether what was stored says the same as what is counted now.
pub(crate) fn is_same(stored: &[u8], counted: &[u8]) -> bool {
    from_bytes(stored).is_some_and(|stored| from_bytes(counted) == Some(stored))
}

/// What was stored; `None` if it is damaged. What was priced by another list is priced again.
fn from_bytes(bytes: &[u8]) -> Option<SessionCounts> {
    let (prices, counts) = without_sum(bytes)?.split_first_chunk()?;
    let mut counts = SessionCounts::from_bytes(counts)?;
    if *prices != list_of_prices() {
        prices::price(&mut counts);
    }
    Some(counts)
}

fn list_of_prices() -> [u8; 8] {
    xxh3_64(PRICES.as_bytes()).to_le_bytes()
}
