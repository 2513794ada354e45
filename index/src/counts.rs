//! What each session can add to a count, from the index where its files are unchanged.

use hashbrown::HashMap;
use rayon::prelude::*;
use scrollback::view::SessionRow;
use scrollback::view::counting::{CountedSession, SessionCounts};
use scrollback::{Error as ReadError, Session, Source};
use serde::{Deserialize, Serialize};

use crate::archive::{Archive, Reader};
use crate::checked::{with_sum, without_sum};
use crate::index::{Place, SourceId};
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

/// A session to be counted.
struct Uncounted {
    row: Box<SessionRow>,
    source: Source,
    /// Its number and its stamp in the index.
    known: Option<(SourceId, u64)>,
    stored: Option<StoredCounts>,
}

#[derive(Serialize, Deserialize)]
struct Priced {
    prices: String,
    counts: SessionCounts,
}

impl Archive {
    /// What sessions can add to a count. Those that [`Archive::describe`] has just found unchanged are not read again.
    pub fn count(
        &mut self,
        sessions: Vec<(Box<SessionRow>, Source)>,
        is_in_scope: &(dyn Fn(&SessionRow) -> bool + Sync),
        on_counted: &(dyn Fn() + Sync),
    ) -> Counted {
        let known = self.known();
        let mut stored = self.ask(|index| index.counts()).unwrap_or_default();
        let uncounted: Vec<Uncounted> = sessions
            .into_iter()
            .map(|(row, source)| {
                let known = known.get(&Place::of(&source)).map(|known| (known.id, known.stamp));
                let stored = known.and_then(|(id, stamp)| stored.remove(&id).filter(|stored| stored.stamp == stamp));
                Uncounted { row, source, known, stored }
            })
            .collect();
        let (places, now) = (self.places.clone(), self.now);
        let reader = Reader { places: &places, now };
        let count = |Uncounted { row, source, known, stored }| {
            let (counts, learned) = match stored.and_then(|stored: StoredCounts| from_bytes(&stored.bytes)) {
                Some(counts) => (Ok(counts), None),
                None => {
                    let stamp = source.stamp();
                    let counts = reader.session(&source, None).and_then(|session| priced(&session));
                    // What was appended in the meantime is counted next time.
                    let known = known.filter(|(_, known)| Some(*known) == stamp);
                    let bytes = counts.as_ref().ok().and_then(to_bytes);
                    let learned = known.zip(bytes).map(|((id, stamp), bytes)| (id, StoredCounts { stamp, bytes }));
                    (counts, learned)
                }
            };
            on_counted();
            let is_in_scope = is_in_scope(&row);
            (counts.map(|counts| CountedSession { row, counts, is_in_scope }), source, learned)
        };
        let done: Vec<_> = uncounted.into_par_iter().map(count).collect();
        let (mut counted, mut learned) = (Counted::default(), HashMap::new());
        for (session, source, stored) in done {
            match session {
                Ok(session) => {
                    counted.sessions.push(session);
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
pub(crate) fn counted(session: &Session) -> scrollback::Result<Option<Vec<u8>>> {
    Ok(to_bytes(&priced(session)?))
}

fn priced(session: &Session) -> scrollback::Result<SessionCounts> {
    let mut counts = SessionCounts::of(session)?;
    prices::price(&mut counts);
    Ok(counts)
}

fn to_bytes(counts: &SessionCounts) -> Option<Vec<u8>> {
    postcard::to_stdvec(&Priced { prices: PRICES.to_owned(), counts: counts.clone() })
        .ok()
        .map(with_sum)
}

/// Whether what was stored says the same as what is counted now.
pub(crate) fn is_same(stored: &[u8], counted: &[u8]) -> bool {
    from_bytes(stored).is_some_and(|stored| from_bytes(counted) == Some(stored))
}

/// What was stored; `None` if it is damaged. What was priced by another list is priced again.
fn from_bytes(bytes: &[u8]) -> Option<SessionCounts> {
    let Priced { prices, mut counts } = postcard::from_bytes(without_sum(bytes)?).ok()?;
    if prices != PRICES {
        prices::price(&mut counts);
    }
    Some(counts)
}
