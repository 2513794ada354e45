//! Server-sent events: what changes in a session, or in the list of sessions, to one reader.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::board::{Cursor, Step, Wants};
use super::fragment::Fragment;
use super::home::HomeReader;
use super::{Reader, Received, stream_response};
use crate::api::{Ask, FileAddresses, Problem};
use crate::render::text;

/// How often a quiet stream says that it is alive: a reader that is gone is noticed then.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// How many messages are rendered for one reader before it takes them.
const AT_ONCE: usize = 16;

/// A message may be rewritten while it is read: then it is read again, so often.
const MOST_FAILURES: usize = 20;
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// A larger piece of an event is not copied; smaller ones are sent together.
const COPIED_BYTES: usize = 16 * 1024;
const TOGETHER_BYTES: usize = 32 * 1024;

/// What is sent of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    Both,
    Html,
    Message,
}

/// Follows a session.
pub(crate) async fn of_session(ask: Ask) -> Response {
    match follow(&ask).await {
        Ok((telling, sender, receiver)) => {
            tokio::spawn(async move { drop(telling.run(sender).await) });
            stream_response(Body::from_stream(Received(receiver)))
        }
        Err(problem) => problem.into_response(),
    }
}

type Channel = mpsc::Sender<io::Result<Bytes>>;

async fn follow(ask: &Ask) -> Result<(Telling, Channel, mpsc::Receiver<io::Result<Bytes>>), Problem> {
    let entry = ask.entry()?;
    let parts = match ask.params.get("parts") {
        None => Parts::Both,
        Some("html") => Parts::Html,
        Some("message") => Parts::Message,
        Some(other) => return Err(Problem::usage(format!("parts: {other:?} is not html or message"))),
    };
    let reader = ask.live.follow(&entry)?;
    let now = first_look(&reader).await?;
    let cursor = match ask.last_event_id() {
        // What cannot be understood has seen nothing of this session.
        Some(seen) => Cursor::parse(seen).unwrap_or(Cursor { generation: String::new(), offset: 0 }),
        None => now,
    };
    let (sender, receiver) = mpsc::channel(1);
    Ok((Telling { reader, cursor, parts, addresses: FileAddresses::of(&ask.origin, &entry) }, sender, receiver))
}

/// Waits until a session was looked at.
pub(super) async fn first_look(reader: &Reader) -> Result<Cursor, Problem> {
    let mut news = reader.news();
    loop {
        match reader.now() {
            Ok(Some(now)) => return Ok(now),
            Err(why) => return Err(Problem::new(axum::http::StatusCode::GONE, "gone", why)),
            Ok(None) => news.changed().await.map_err(|_| Problem::unavailable("the server is stopping"))?,
        }
    }
}

/// One reader of a session.
struct Telling {
    reader: Reader,
    cursor: Cursor,
    parts: Parts,
    addresses: FileAddresses,
}

/// How far a reader was told.
enum Told {
    Everything,
    APart,
    UpToAFailure,
}

/// The reader is gone.
struct Gone;

impl Telling {
    async fn run(mut self, sender: Channel) -> Result<(), Gone> {
        let mut news = self.reader.news();
        send(&sender, greeting((!self.cursor.generation.is_empty()).then(|| self.cursor.text()))).await?;
        let mut failures = 0;
        loop {
            news.borrow_and_update();
            if self.reader.now().is_err() {
                // Deleted: whoever comes back is told so.
                return Ok(());
            }
            match self.tell(failures >= MOST_FAILURES, &sender).await? {
                Told::Everything => {
                    failures = 0;
                    wait(&mut news, &sender).await?;
                }
                Told::APart => failures = 0,
                Told::UpToAFailure => {
                    failures += 1;
                    tokio::time::sleep(TRY_AGAIN).await;
                }
            }
        }
    }

    /// Tells what is new. A message that cannot be read now is tried again, unless it failed too often: then it is left out.
    async fn tell(&mut self, leaves_out: bool, sender: &Channel) -> Result<Told, Gone> {
        let wants = if self.parts == Parts::Message { Wants::Message } else { Wants::Page };
        let plan = self.reader.plan(&self.cursor, wants);
        let has_ended = self.reader.has_ended();
        let mut out = Outgoing { sender, bytes: Vec::new() };
        for steps in plan.steps.chunks(AT_ONCE) {
            let fragments = self.fragments(steps).await;
            for step in steps {
                if let Step::Message { id, made_of, .. } = step
                    && !leaves_out
                {
                    match fragments.get(id) {
                        Some((fragment, is_of_plan)) if *is_of_plan || fragment.made_of == *made_of => {}
                        // It has changed since: it comes with the offset of that.
                        Some(_) => {
                            out.flush().await?;
                            return Ok(Told::APart);
                        }
                        None => {
                            out.flush().await?;
                            return Ok(Told::UpToAFailure);
                        }
                    }
                }
                self.step(step, &fragments, has_ended, &plan.end, &mut out).await?;
                if let Step::Message { reached, .. } = step
                    && let Some(cursor) = self.cursor.after(*reached, &plan.end.generation)
                {
                    self.cursor = cursor;
                }
            }
        }
        out.flush().await?;
        self.cursor = plan.end;
        Ok(if plan.is_all { Told::Everything } else { Told::APart })
    }

    /// The fragments of some messages, and whether each is what it was when they were planned.
    async fn fragments(&self, steps: &[Step]) -> HashMap<String, (Arc<Fragment>, bool)> {
        let (mut known, mut missing) = (HashMap::new(), Vec::new());
        for step in steps {
            match step {
                Step::Message { id, fragment: Some(fragment), .. } => {
                    known.insert(id.clone(), (fragment.clone(), true));
                }
                Step::Message { id, fragment: None, .. } => missing.push(id.clone()),
                Step::Reset { .. } | Step::Removed(_) => {}
            }
        }
        if !missing.is_empty() {
            let rendered = fragments(&self.reader, missing).await;
            known.extend(rendered.into_iter().map(|(id, fragment)| (id, (fragment, false))));
        }
        known
    }

    async fn step(
        &self,
        step: &Step,
        fragments: &HashMap<String, (Arc<Fragment>, bool)>,
        has_ended: bool,
        end: &Cursor,
        out: &mut Outgoing<'_>,
    ) -> Result<(), Gone> {
        match step {
            Step::Reset { reason, is_last } => {
                let id = is_last.then(|| end.text());
                out.push(event("reset", id, &json!({ "reason": reason }))).await
            }
            Step::Removed(ids) => {
                let anchors: Vec<String> = ids.iter().map(|id| anchor(id)).collect();
                out.push(event("removed", None, &json!({ "ids": ids, "anchors": anchors }))).await
            }
            Step::Message { id, after, reached, .. } => {
                // One that cannot be read is left out.
                let Some((fragment, _)) = fragments.get(id) else { return Ok(()) };
                let cursor = self.cursor.after(*reached, &end.generation);
                let mark = cursor.map(|cursor| format!("id: {}\n", cursor.text())).unwrap_or_default();
                let mut head = format!("event: message\n{mark}");
                let after = after.as_deref();
                head += &format!("data: {{\"id\":{},\"after\":{},", Value::from(id.as_str()), Value::from(after));
                if self.parts != Parts::Message {
                    // What the page calls the message before it, and whether the agent has ended its answer.
                    head += &format!("\"behind\":{},\"ended\":{has_ended},", Value::from(after.map(anchor)));
                }
                out.push(head.into()).await?;
                if self.parts != Parts::Message {
                    out.push(fragment.html()).await?;
                }
                if self.parts == Parts::Both {
                    out.push(Bytes::from_static(b",")).await?;
                }
                if self.parts != Parts::Html {
                    out.push(fragment.json(&self.addresses)).await?;
                }
                out.push(Bytes::from_static(b"}\n\n")).await
            }
        }
    }
}

/// Small events on their way to one reader are sent together; a large piece is one that everybody shares.
struct Outgoing<'c> {
    sender: &'c Channel,
    bytes: Vec<u8>,
}

impl Outgoing<'_> {
    async fn push(&mut self, piece: Bytes) -> Result<(), Gone> {
        if piece.len() > COPIED_BYTES {
            self.flush().await?;
            return send(self.sender, piece).await;
        }
        self.bytes.extend_from_slice(&piece);
        if self.bytes.len() > TOGETHER_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Gone> {
        match std::mem::take(&mut self.bytes) {
            bytes if bytes.is_empty() => Ok(()),
            bytes => send(self.sender, bytes.into()).await,
        }
    }
}

/// What the page calls a message.
fn anchor(id: &str) -> String {
    format!("m-{}", text::anchor(id))
}

/// The fragments of some messages.
pub(super) async fn fragments(reader: &Reader, ids: Vec<String>) -> HashMap<String, Arc<Fragment>> {
    let (known, missing) = reader.known_fragments(&ids);
    if missing.is_empty() {
        return known;
    }
    let feed = reader.feed();
    tokio::task::spawn_blocking(move || feed.fragments(&ids)).await.unwrap_or(known)
}

/// Follows the list of sessions.
pub(crate) async fn of_home(ask: Ask) -> Response {
    let reader = HomeReader::new(&ask.live.home, ask.last_event_id());
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move { drop(tell_home(reader, sender).await) });
    stream_response(Body::from_stream(Received(receiver)))
}

async fn tell_home(mut reader: HomeReader, sender: Channel) -> Result<(), Gone> {
    let mut news = reader.news();
    let mut is_first = true;
    loop {
        news.borrow_and_update();
        let told = reader.next();
        if std::mem::take(&mut is_first) {
            send(&sender, greeting(told.begins_at)).await?;
        }
        for (name, data, id) in told.events {
            let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
            let data = data.as_ref();
            let text = [format!("event: {name}\n{id}data: ").as_bytes(), data, b"\n\n"].concat();
            send(&sender, text.into()).await?;
        }
        wait(&mut news, &sender).await?;
    }
}

/// Waits until something is new; says now and then that it is alive.
async fn wait(news: &mut watch::Receiver<u64>, sender: &Channel) -> Result<(), Gone> {
    loop {
        tokio::select! {
            changed = news.changed() => return changed.map_err(|_| Gone),
            () = sender.closed() => return Err(Gone),
            () = tokio::time::sleep(ALIVE_EVERY) => send(sender, Bytes::from_static(b": alive\n\n")).await?,
        }
    }
}

/// How a stream begins: when to come back, and where the reader is now.
fn greeting(id: Option<String>) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("retry: 1000\n{id}\n").into()
}

fn event(name: &str, id: Option<String>, data: &Value) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("event: {name}\n{id}data: {data}\n\n").into()
}

async fn send(sender: &Channel, bytes: Bytes) -> Result<(), Gone> {
    sender.send(Ok(bytes)).await.map_err(|_| Gone)
}
