//! The answer that is being written, as a UI message stream of the AI SDK: `useChat` resumes it like an answer of its own.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use scrollback::model::{Message, Role, Sdk, json};
use scrollback::view::stream::{Chunks, Update};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::board::{Cursor, Step, Wants};
use super::events::{first_look, fragments};
use super::fragment::Fragment;
use super::{Reader, Received, stream_response};
use crate::api::{Ask, FileAddresses, Problem};

/// An answer that has not grown for so long is not being written any more.
const QUIET_TIME: Duration = Duration::from_secs(60);

/// How often a quiet stream says that it is alive.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// The stream; 204 if no answer is being written.
pub(crate) async fn stream(ask: Ask) -> Response {
    match begin(&ask).await {
        Ok(Some(answer)) => {
            let (sender, receiver) = mpsc::channel(1);
            tokio::spawn(async move { drop(answer.run(&sender).await) });
            let mut response = stream_response(Body::from_stream(Received(receiver)));
            let name = HeaderName::from_static("x-vercel-ai-ui-message-stream");
            response.headers_mut().insert(name, HeaderValue::from_static("v1"));
            response
        }
        Ok(None) => StatusCode::NO_CONTENT.into_response(),
        Err(problem) => problem.into_response(),
    }
}

async fn begin(ask: &Ask) -> Result<Option<Answer>, Problem> {
    let (entry, sdk) = (ask.entry()?, ask.sdk()?);
    let reader = ask.live.follow(&entry)?;
    first_look(&reader).await?;
    // What was written just now may not have been seen yet.
    let feed = reader.feed();
    tokio::task::spawn_blocking(move || feed.look()).await.map_err(|_| Problem::internal())?;
    let cursor = first_look(&reader).await?;
    let Some((id, quiet)) = reader.answering() else { return Ok(None) };
    // We may have come after it grew: then the list knows when, or the time of its newest record does.
    let unlisted = (!entry.is_as_listed()).then_some(Duration::ZERO);
    let known = quiet.into_iter().chain(unlisted).chain(entry.quiet_for((ask.site.now)()));
    let Some(quiet) = known.min().filter(|quiet| *quiet < QUIET_TIME) else { return Ok(None) };
    let grown = Instant::now().checked_sub(quiet).unwrap_or_else(Instant::now);
    let addresses = FileAddresses::of(&ask.origin, &entry);
    Ok(Some(Answer { reader, cursor, id, grown, chunks: Chunks::new(sdk), sdk, addresses }))
}

/// An answer that is being written, and what was sent of it.
struct Answer {
    reader: Reader,
    cursor: Cursor,
    id: String,
    /// When it grew last.
    grown: Instant,
    chunks: Chunks,
    sdk: Sdk,
    addresses: FileAddresses,
}

/// The reader is gone.
struct Gone;

type Channel = mpsc::Sender<io::Result<Bytes>>;

impl Answer {
    async fn run(mut self, sender: &Channel) -> Result<(), Gone> {
        let mut news = self.reader.news();
        let known = fragments(&self.reader, vec![self.id.clone()]).await;
        let mut is_open = self.message(&self.id.clone(), &known, sender).await?;
        while is_open {
            news.borrow_and_update();
            is_open = self.tell(sender).await?;
            if !is_open {
                break;
            }
            let alive = Instant::now() + ALIVE_EVERY;
            let quiet = self.grown + QUIET_TIME;
            tokio::select! {
                changed = news.changed() => changed.map_err(|_| Gone)?,
                () = sender.closed() => return Err(Gone),
                () = tokio::time::sleep_until(quiet.min(alive)) => {
                    is_open = Instant::now() < quiet;
                    sender.send(Ok(Bytes::from_static(b": alive\n\n"))).await.map_err(|_| Gone)?;
                }
            }
        }
        for chunk in self.chunks.finish() {
            send(&chunk, sender).await?;
        }
        sender.send(Ok(Bytes::from_static(b"data: [DONE]\n\n"))).await.map_err(|_| Gone)
    }

    /// Sends what is new; whether the answer is still being written.
    async fn tell(&mut self, sender: &Channel) -> Result<bool, Gone> {
        let plan = self.reader.plan(&self.cursor, Wants::Message);
        if plan.end != self.cursor {
            self.grown = Instant::now();
        }
        let id = |step: &Step| if let Step::Message { id, .. } = step { Some(id.clone()) } else { None };
        let ids: Vec<String> = plan.steps.iter().filter_map(id).collect();
        let is_reset = plan.steps.iter().any(|step| matches!(step, Step::Reset { .. }));
        if is_reset || self.reader.now().is_err() {
            return Ok(false);
        }
        let known = fragments(&self.reader, ids).await;
        self.cursor = plan.end.clone();
        for step in &plan.steps {
            let is_open = match step {
                Step::Reset { .. } => false,
                Step::Removed(ids) => {
                    for chunk in self.chunks.of(Update::Removed(ids.clone())) {
                        send(&chunk, sender).await?;
                    }
                    !ids.contains(&self.id)
                }
                Step::Message { id, .. } => self.message(id, &known, sender).await?,
            };
            if !is_open {
                return Ok(false);
            }
        }
        if !plan.is_all {
            // The rest of a long plan.
            return Box::pin(self.tell(sender)).await;
        }
        Ok(self.reader.answering().is_some_and(|(id, _)| id == self.id))
    }

    /// Sends a message; whether the answer goes on after it.
    async fn message(
        &mut self,
        id: &str,
        known: &HashMap<String, Arc<Fragment>>,
        sender: &Channel,
    ) -> Result<bool, Gone> {
        let Some(fragment) = known.get(id) else { return Ok(true) };
        let message: Message = self.addresses.in_message((*fragment.message).clone());
        let is_next = id != self.id && message.role != Role::System && self.reader.is_behind(id, &self.id);
        let mut chunks = Vec::new();
        if id == self.id {
            chunks = self.chunks.of(Update::Message(Box::new(message)));
        } else {
            // The protocol can extend one answer only: everything else is sent whole, beside it.
            if is_next {
                chunks = self.chunks.finish();
            }
            chunks.push(whole(message, self.sdk));
        }
        for chunk in chunks {
            send(&chunk, sender).await?;
        }
        Ok(!is_next)
    }
}

/// A whole message beside the answer.
fn whole(message: Message, sdk: Sdk) -> Value {
    let data = serde_json::to_value(message.for_sdk(sdk)).unwrap_or_default();
    json!({"type": "data-message", "data": data, "transient": true})
}

async fn send(chunk: &Value, sender: &Channel) -> Result<(), Gone> {
    let text = format!("data: {}\n\n", json::to_string(chunk));
    sender.send(Ok(text.into())).await.map_err(|_| Gone)
}
