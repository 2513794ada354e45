//! Sessions while they are written: who follows a file, and how what changed reaches everybody who looks at it.

mod board;
pub(crate) mod chat;
pub(crate) mod events;
mod feed;
mod fragment;
mod generations;
mod home;

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::io;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use scrollback::session::Session;
use tokio::sync::mpsc;

use crate::api::Problem;
use crate::catalogue::Entry;
use crate::pages::home::address;
use crate::site::Site;
use board::Cursor;
use feed::Feed;
use generations::{Generations, Key, key};
use home::Home;

/// How many sessions are followed at once: each has a thread.
const FEEDS: usize = 64;

/// Everything that is followed.
pub(crate) struct Live {
    site: Arc<Site>,
    generations: Arc<Generations>,
    feeds: Mutex<HashMap<Key, Arc<Feed>>>,
    home: Arc<Home>,
}

impl Live {
    pub(crate) fn new(site: Arc<Site>) -> Arc<Live> {
        let generations = Arc::new(Generations::new());
        let home = Arc::new(Home::new(site.clone(), generations.process()));
        Arc::new(Live { site, generations, feeds: Mutex::default(), home })
    }

    /// Follows a session, with everybody else who does.
    fn follow(self: &Arc<Live>, entry: &Entry) -> Result<Reader, Problem> {
        let mut feeds = locked(&self.feeds);
        let is_full = feeds.len() >= FEEDS;
        match feeds.entry(key(&entry.source)) {
            Slot::Occupied(slot) => Ok(Reader::new(slot.get().clone())),
            Slot::Vacant(_) if is_full => Err(Problem::unavailable("too many sessions are followed at once")),
            Slot::Vacant(slot) => {
                let feed = Feed::new(entry.source.clone(), address(entry), self.site.clone(), self.generations.clone());
                let feed = slot.insert(Arc::new(feed)).clone();
                let reader = Reader::new(feed.clone());
                let live = self.clone();
                std::thread::spawn(move || feed.run(|| live.forget(&feed)));
                Ok(reader)
            }
        }
    }

    /// Forgets a session that nobody reads. False if somebody has just come.
    fn forget(&self, feed: &Feed) -> bool {
        let mut feeds = locked(&self.feeds);
        let is_alone = feed.readers.load(Ordering::Acquire) == 0;
        if is_alone {
            feeds.remove(&key(&feed.source));
        }
        is_alone
    }

    /// Where to begin following a session that is about to be read: nothing that is written from now on is missed.
    pub(crate) fn position(&self, entry: &Entry) -> Position {
        let feed = locked(&self.feeds).get(&key(&entry.source)).cloned();
        match feed.and_then(|feed| feed.now().ok().flatten()) {
            Some(now) => Position::Followed(now),
            None => Position::Generation(self.generations.of(&entry.source)),
        }
    }
}

/// Where a page begins to follow, as far as that is known before its session is read.
pub(crate) enum Position {
    /// Somebody follows it.
    Followed(Cursor),
    /// Its file.
    Generation(Option<String>),
}

impl Position {
    /// The same, when the session was read: an id of an event.
    pub(crate) fn after(self, session: &Session) -> String {
        match (self, session.appended_offset()) {
            (Position::Followed(cursor), _) => cursor.text(),
            (Position::Generation(Some(generation)), Some(offset)) => Cursor { generation, offset }.text(),
            // Nobody can say what changed since: the page is told to begin anew.
            (Position::Generation(_), _) => "0:0".to_owned(),
        }
    }
}

/// Somebody who follows a session.
pub(crate) struct Reader {
    feed: Arc<Feed>,
}

impl Reader {
    fn new(feed: Arc<Feed>) -> Reader {
        feed.readers.fetch_add(1, Ordering::AcqRel);
        Reader { feed }
    }

    fn feed(&self) -> Arc<Feed> {
        self.feed.clone()
    }
}

impl Deref for Reader {
    type Target = Feed;

    fn deref(&self) -> &Feed {
        &self.feed
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.feed.readers.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Pieces of an answer on their way to the reader.
pub(crate) struct Received(pub(crate) mpsc::Receiver<io::Result<Bytes>>);

impl futures_core::Stream for Received {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.0.poll_recv(context);
        if matches!(polled, Poll::Ready(None)) {
            // hyper 1.12 may see the end of a body whose length nobody told (HTTP/1.0) and sleep without closing the connection: it
            // closes when it is polled once more.
            context.waker().wake_by_ref();
        }
        polled
    }
}

/// A stream of events.
pub(crate) fn stream_response(body: Body) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// What a lock holds; whoever panicked with it left it as it was.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
