//! Brings an index up to date: reads what has changed, on all cores, while one thread writes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use scrollback::{Error as ReadError, ReadOptions, Session, Source};

use crate::archive::{Archive, Reader};
use crate::card::{Card, Depth};
use crate::index::{Learned, Place, SourceId};
use crate::part::each_part;

/// How much text is stored at once, and how long one that stops it waits: less loses time, more loses work.
const BATCH_BYTES: usize = 16 * 1024 * 1024;
const BATCH_TIME: Duration = Duration::from_secs(2);

/// How many sessions wait to be written: each holds its words in memory.
const WAITING: usize = 2;

/// What a refresh did.
#[derive(Debug, Default)]
pub struct Refreshed {
    /// How many sessions were read.
    pub read: usize,
    /// What could not be read.
    pub unreadable: Vec<ReadError>,
    /// Whether it was stopped before the end; the next one continues.
    pub is_stopped: bool,
}

/// A session whose text is to be read.
pub struct Pending {
    pub(crate) source: Source,
    /// How large its file is.
    pub bytes: u64,
    modified: Option<std::time::SystemTime>,
}

impl Archive {
    /// The sessions that are not known as deep as this, the oldest first: what is stored later counts as newer.
    pub fn pending(&mut self, sources: &[Source], depth: Depth) -> Vec<Pending> {
        let known = self.known();
        let is_known =
            |source: &&Source| known.get(&Place::of(source)).is_some_and(|known| known.holds(source.stamp(), depth));
        let changed = sources.iter().filter(|source| !is_known(source));
        let mut pending: Vec<Pending> = changed
            .map(|source| {
                let metadata = std::fs::metadata(&source.path).ok();
                let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
                Pending { source: source.clone(), bytes: metadata.map_or(0, |metadata| metadata.len()), modified }
            })
            .collect();
        pending.sort_by(|a, b| (a.modified, &a.source.path).cmp(&(b.modified, &b.source.path)));
        pending
    }

    /// Reads the text of sessions into the index. `on_read` gets the bytes of each file that was read, and says whether to go on.
    pub fn read_texts(
        &mut self,
        pending: Vec<Pending>,
        depth: Depth,
        on_read: &(dyn Fn(u64) -> bool + Sync),
    ) -> Refreshed {
        let mut refreshed = Refreshed::default();
        if self.index.is_none() || pending.is_empty() {
            return refreshed;
        }
        let (places, now) = (self.places.clone(), self.now);
        let reader = Reader { places: &places, now };
        let (next, is_stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = |learned: SyncSender<std::result::Result<Learned, ReadError>>| {
            while let Some(pending) = pending.get(next.fetch_add(1, Ordering::Relaxed)) {
                if is_stopped.load(Ordering::Relaxed) {
                    return;
                }
                let read = reader.with_options(&pending.source, |reading| read(&pending.source, reading, depth));
                let read = read.transpose();
                if !on_read(pending.bytes) {
                    is_stopped.store(true, Ordering::Relaxed);
                }
                if let Some(read) = read
                    && learned.send(read).is_err()
                {
                    return;
                }
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(WAITING);
            for _ in 0..workers {
                let sender = sender.clone();
                scope.spawn(|| work(sender));
            }
            drop(sender);
            let (mut batch, mut bytes, mut since) = (Vec::new(), 0, Instant::now());
            for read in receiver {
                match read {
                    Ok(learned) => {
                        bytes += learned.parts.iter().map(|part| part.words.len()).sum::<usize>();
                        batch.push(learned);
                        refreshed.read += 1;
                    }
                    Err(error) => refreshed.unreadable.push(error),
                }
                if bytes >= BATCH_BYTES || since.elapsed() >= BATCH_TIME {
                    let full = std::mem::take(&mut batch);
                    if self.ask(|index| index.store(full)).is_none() {
                        is_stopped.store(true, Ordering::Relaxed);
                    }
                    (bytes, since) = (0, Instant::now());
                }
            }
            if !batch.is_empty() {
                self.ask(|index| index.store(batch));
            }
        });
        refreshed.is_stopped = is_stopped.into_inner();
        refreshed
    }

    /// Forgets sessions whose files are gone.
    pub fn forget_missing(&mut self) -> usize {
        let is_gone = |place: &Place| place.path().is_some_and(|path| matches!(path.try_exists(), Ok(false)));
        let gone: Vec<SourceId> =
            self.known().into_iter().filter(|(place, _)| is_gone(place)).map(|(_, known)| known.id).collect();
        if !gone.is_empty() {
            self.ask(|index| index.forget(&gone));
        }
        gone.len()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.ask(|index| index.clear());
    }

    /// Makes the index smaller and faster after much was stored.
    pub fn optimize(&mut self) {
        self.ask(|index| index.optimize());
    }
}

/// Reads a whole session; `None` if it is gone.
fn read(source: &Source, reading: &ReadOptions<'_>, depth: Depth) -> std::result::Result<Option<Learned>, ReadError> {
    let Some(stamp) = source.stamp() else { return Ok(None) };
    let session = Session::open(source, reading)?;
    let mut parts = Vec::new();
    each_part(&session, depth == Depth::Everything, |part| parts.push(part))?;
    Ok(Some(Learned { place: Place::of(source), stamp, depth, card: Card::new(&session.row()?), parts }))
}
