//! The local server: which request may see what, and which page answers it.

mod guard;
mod listen;
mod patience;
mod pieces;
mod scans;

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Form, Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use maud::{Markup, html};
use scrollback::model::Part;
use scrollback::view::Conversation;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::api::twins::{self, Twin};
use crate::api::{self, Answerer, Ask, Problem, RETRY_AFTER_SECONDS};
use crate::catalogue::Found;
use crate::export::{self, Document};
use crate::live::{self, Live, Received};
use crate::pages::shell::{self, Theme};
use crate::pages::{HOLE, Made, Params, Rest, Takes, error, files, home, replay, search, session, stats, tree};
use crate::render::{file, text};
use crate::site::Site;
use crate::style::{SCRIPT, STYLE};

pub use guard::{Guard, Secret};
pub use listen::{Listener, Stop};
use scans::{Busy, Scans, Waiting};

/// How many pages are made at once: each may hold a few megabytes.
const PAGES_AT_ONCE: usize = 4;

/// How long making a page may take, and the rest of one that has begun.
const PAGE_TIME: Duration = Duration::from_secs(30);

/// The largest form that is read: it holds one word.
const FORM_LIMIT_BYTES: usize = 1024;

/// A larger part of a message is cut, where it is shown by itself.
const PART_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// Nothing but our own files: no inline script or style, no frame, no other place.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A file of a session, should somebody open it by itself: it runs nothing and loads nothing.
pub(crate) const FILE_POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// What every request shares.
#[derive(Clone)]
struct Shared {
    site: Arc<Site>,
    guard: Arc<Guard>,
    live: Arc<Live>,
    pages: Arc<Semaphore>,
    scans: Scans,
}

/// The server as a value: requests in, answers out.
pub fn router(site: Arc<Site>, guard: Arc<Guard>) -> Router {
    router_with(site, guard, Router::new())
}

/// The same with further addresses, behind the same guard.
pub fn router_with(site: Arc<Site>, guard: Arc<Guard>, further: Router) -> Router {
    let live = Live::new(site.clone());
    let shared = Shared { site, guard, live, pages: Arc::new(Semaphore::new(PAGES_AT_ONCE)), scans: Scans::new() };
    Router::new()
        .route("/", get(home_page))
        .route("/search", get(search_page))
        .route("/stats", get(stats_page))
        .route("/s/{id}", get(session_page))
        .route("/s/{id}/tree", get(tree_page))
        .route("/s/{id}/files", get(files_page))
        .route("/s/{id}/replay", get(replay_page))
        .route("/s/{id}/export", get(export_file))
        .route("/s/{id}/part/{message}/{part}", get(whole_part))
        .route("/s/{id}/file/{message}/{part}", get(file_of_message))
        .route("/.json", twin_at(Twin::Home))
        .route("/index.json", twin_at(Twin::Home))
        .route("/search.json", twin_at(Twin::Search))
        .route("/stats.json", twin_at(Twin::Stats))
        .route("/s/{id}/tree.json", twin_at(Twin::Tree))
        .route("/s/{id}/files.json", twin_at(Twin::Files))
        .route("/s/{id}/replay.json", twin_at(Twin::Replay))
        .route("/api", any(ask))
        .route("/api/{*question}", any(ask))
        .route("/theme", post(choose_theme))
        .route("/assets/style.css", get(async || asset("text/css; charset=utf-8", STYLE.as_bytes())))
        .route("/assets/page.js", get(async || asset("text/javascript; charset=utf-8", SCRIPT.as_bytes())))
        .route("/assets/icon.svg", get(async || asset("image/svg+xml", ICON.as_bytes())))
        .fallback(no_page)
        .method_not_allowed_fallback(async |uri: Uri| match api::is_for_programs(uri.path()) {
            true => Problem::method(format!("{} can only be read", uri.path())).into_response(),
            false => plain(StatusCode::METHOD_NOT_ALLOWED, "this address cannot be asked so\n"),
        })
        .layer(middleware::from_fn_with_state(shared.clone(), refuse_bytes))
        .layer(axum::extract::DefaultBodyLimit::max(FORM_LIMIT_BYTES))
        .with_state(shared.clone())
        .merge(further)
        .layer(middleware::from_fn_with_state(shared, judge))
}

const ICON: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="none" stroke="#0b6272" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round" d="m4.5 5.5 3.5-3.5 3.5 3.5M2.5 9.25h11M2.5 13.25h7"/></svg>"##;

/// Lets a request pass only if it comes from our own page, and says so in the answer.
async fn judge(State(shared): State<Shared>, request: axum::extract::Request, next: middleware::Next) -> Response {
    let verdict = shared.guard.judge(request.method(), request.uri(), request.headers());
    let is_for_programs = api::is_for_programs(request.uri().path());
    let origin = shared.guard.allowed_origin(request.uri(), request.headers());
    let is_picture = request.uri().path().contains("/file/");
    // A chat that sends a message is told why it cannot, whoever it is.
    let is_message = request.method() == Method::POST && request.uri().path() == "/api/chat";
    let mut response = match verdict {
        guard::Verdict::Pass => {
            let answered = tokio::time::timeout(PAGE_TIME, next.run(request)).await;
            let too_long = || match is_for_programs {
                true => Problem::unavailable("this takes too long; try again").into_response(),
                false => unavailable("This takes too long", "It was given up. Ask for less, or try again."),
            };
            answered.unwrap_or_else(|_| too_long())
        }
        guard::Verdict::Enter { to, cookie } => {
            let mut response = StatusCode::SEE_OTHER.into_response();
            insert(&mut response, header::LOCATION, &to);
            insert(&mut response, header::SET_COOKIE, &cookie);
            response
        }
        guard::Verdict::Preflight => preflight(),
        guard::Verdict::Unknown if is_message => api::refusal().into_response(),
        guard::Verdict::Open(_) | guard::Verdict::Unknown if is_for_programs => Problem::unauthorized().into_response(),
        guard::Verdict::Open(path) => page(StatusCode::UNAUTHORIZED, shell::bare("Open", guard::open_page(&path))),
        guard::Verdict::Unknown => page(StatusCode::UNAUTHORIZED, shell::bare("Not open", guard::unknown_page())),
        guard::Verdict::Malformed(why) if is_for_programs => Problem::usage(why.trim_end()).into_response(),
        guard::Verdict::Malformed(why) => plain(StatusCode::BAD_REQUEST, why),
        guard::Verdict::Refused(why) if is_for_programs => Problem::forbidden(why.trim_end()).into_response(),
        guard::Verdict::Refused(why) => plain(StatusCode::FORBIDDEN, why),
    };
    if let Some(origin) = origin {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        insert(&mut response, header::ACCESS_CONTROL_EXPOSE_HEADERS, "etag, x-vercel-ai-ui-message-stream");
    }
    if is_for_programs && shared.guard.has_other_origins() {
        insert(&mut response, header::VARY, "origin");
    }
    if is_picture && shared.guard.has_other_origins() {
        // The picture of a message, on a page of the same machine: the cookie goes with it.
        insert(&mut response, HeaderName::from_static("cross-origin-resource-policy"), "same-site");
    }
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ];
    for (name, value) in fixed {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Says in our own words that an address is no text: the framework would say it in its own.
async fn refuse_bytes(
    State(shared): State<Shared>,
    request: axum::extract::Request,
    next: middleware::Next,
) -> Response {
    let path = request.uri().path();
    let is_text = percent_encoding::percent_decode_str(path).decode_utf8().is_ok();
    match api::is_for_programs(path) {
        _ if is_text => next.run(request).await,
        true => Problem::usage("the address is not UTF-8 when it is decoded").into_response(),
        false => {
            let (uri, headers) = (request.uri().clone(), request.headers().clone());
            make(shared, uri, headers, |_, _| error::bad_address()).await
        }
    }
}

/// What a page of another site may ask.
fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    insert(&mut response, header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST");
    let allowed = "authorization, content-type, if-none-match, last-event-id, idempotency-key, user-agent";
    insert(&mut response, header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    insert(&mut response, header::ACCESS_CONTROL_MAX_AGE, "600");
    response
}

async fn home_page(State(shared): State<Shared>, uri: Uri, headers: HeaderMap) -> Response {
    make(shared, uri, headers, home::page).await
}

async fn search_page(State(shared): State<Shared>, uri: Uri, headers: HeaderMap) -> Response {
    make(shared, uri, headers, search::page).await
}

/// Answers a search.
async fn searching(
    shared: Shared,
    ask: Ask,
    answer: impl FnOnce(&Ask) -> Result<Response, Problem> + Send + 'static,
) -> Response {
    let _waiting = Waiting(ask.given_up.clone());
    let reads_sessions = search::reads_sessions(&ask.params, &shared.site);
    let Ok(turn) = shared.scans.turn_if(reads_sessions).await else { return Problem::busy().into_response() };
    reading(shared, move || {
        let _turn = turn;
        answer(&ask)
    })
    .await
}

async fn stats_page(State(shared): State<Shared>, uri: Uri, headers: HeaderMap) -> Response {
    make(shared, uri, headers, stats::page).await
}

async fn session_page(State(shared): State<Shared>, Path(id): Path<String>, uri: Uri, headers: HeaderMap) -> Response {
    if let Some(twin_of) = twin_of(&id, &shared.site) {
        return twin(Twin::Session, State(shared), Some(Path(twin_of)), uri, headers).await;
    }
    let live = shared.live.clone();
    make(shared, uri, headers, move |params, site| session::page(&id, params, site, &live)).await
}

async fn tree_page(State(shared): State<Shared>, Path(id): Path<String>, uri: Uri, headers: HeaderMap) -> Response {
    make(shared, uri, headers, move |params, site| tree::page(&id, params, site)).await
}

async fn files_page(State(shared): State<Shared>, Path(id): Path<String>, uri: Uri, headers: HeaderMap) -> Response {
    make(shared, uri, headers, move |params, site| files::page(&id, params, site)).await
}

async fn replay_page(State(shared): State<Shared>, Path(id): Path<String>, uri: Uri, headers: HeaderMap) -> Response {
    make(shared, uri, headers, move |params, site| replay::page(&id, params, site)).await
}

async fn no_page(State(shared): State<Shared>, uri: Uri, headers: HeaderMap) -> Response {
    if api::is_for_programs(uri.path()) {
        return Problem::nothing_at(uri.path()).into_response();
    }
    make(shared, uri, headers, |_, _| error::no_page()).await
}

/// The session whose twin in JSON this is: `3f8a` of `3f8a.json`, unless a session is called that.
fn twin_of(id: &str, site: &Site) -> Option<String> {
    let shorter = id.strip_suffix(".json")?;
    let is_a_name = matches!(site.catalogue.shelf().find(id), Found::One(_));
    (!is_a_name).then(|| shorter.to_owned())
}

fn twin_at(of: Twin) -> MethodRouter<Shared> {
    get(async move |shared, id, uri, headers| twin(of, shared, id, uri, headers).await)
}

/// What a page shows, as JSON.
async fn twin(
    twin: Twin,
    State(shared): State<Shared>,
    id: Option<Path<String>>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let names = id.into_iter().map(|Path(id)| id).collect();
    let ask = Ask::new(shared.site.clone(), shared.live.clone(), api::params(&uri), names, headers);
    match twin {
        Twin::Search => searching(shared, ask, move |ask| twins::answer(twin, ask)).await,
        _ => reading(shared, move || twins::answer(twin, &ask)).await,
    }
}

/// A question of the API.
async fn ask(State(shared): State<Shared>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let (route, names) = match api::find(&method, uri.path()) {
        Ok(found) => found,
        Err(problem) => return problem.into_response(),
    };
    let is_head = method == Method::HEAD;
    if let Err(problem) = route.check(&api::params(&uri)) {
        return problem.into_response();
    }
    let ask = Ask::new(shared.site.clone(), shared.live.clone(), api::params(&uri), names, headers);
    match route.answer {
        Answerer::Reading(answer) => reading(shared, move || answer(&ask)).await,
        Answerer::Searching(answer) => searching(shared, ask, answer).await,
        // Nobody follows for the sake of a head.
        Answerer::SessionEvents | Answerer::ChatStream if is_head && let Err(problem) = ask.entry() => {
            problem.into_response()
        }
        Answerer::SessionEvents | Answerer::HomeEvents | Answerer::ChatStream if is_head => {
            live::stream_response(Body::empty())
        }
        Answerer::SessionEvents => live::events::of_session(ask).await,
        Answerer::HomeEvents => live::events::of_home(ask).await,
        Answerer::ChatStream => live::chat::stream(ask).await,
        Answerer::Records => Problem::forbidden("this server does not record").into_response(),
    }
}

/// Answers on a thread that may read files.
async fn reading(shared: Shared, answer: impl FnOnce() -> Result<Response, Problem> + Send + 'static) -> Response {
    let Ok(permit) = shared.pages.clone().acquire_owned().await else {
        return Problem::unavailable("the server is stopping").into_response();
    };
    // Its place is free when it has ended, not when nobody waits for it any more.
    let answer = move || {
        let _permit = permit;
        answer()
    };
    match tokio::task::spawn_blocking(answer).await {
        Ok(answer) => answer.unwrap_or_else(IntoResponse::into_response),
        Err(_) => Problem::internal().into_response(),
    }
}

/// Makes a page on a thread that may read files. One with holes is sent up to the first of them, and the rest when it is known.
async fn make(
    shared: Shared,
    uri: Uri,
    headers: HeaderMap,
    page_of: impl FnOnce(&Params, &Site) -> Made + Send + 'static,
) -> Response {
    let Ok(permit) = shared.pages.clone().acquire_owned().await else { return stopping() };
    let theme = theme_of(&headers);
    let site = shared.site.clone();
    let made = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let params = api::params(&uri);
        let made = page_of(&params, &site);
        let html = shell::page(&made, theme, params.get("q").unwrap_or_default(), &site);
        // Sessions are read masked; this is the net below, for names and errors that come from anywhere else.
        let known: Vec<String> = match made.rest {
            Some(_) => html.split(HOLE).map(|piece| site.masked(piece)).collect(),
            None => vec![site.masked(&html)],
        };
        (made.status, known, made.rest)
    });
    match made.await {
        Ok((status, known, None)) => page(status, known.concat()),
        Ok((status, known, Some(rest))) => {
            page(status, pieces::body(known, |given_up| in_time(shared, rest, given_up)))
        }
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "this page could not be made\n"),
    }
}

/// What goes into the holes of a page, or into the last of them why that is not known.
async fn in_time(shared: Shared, rest: Rest, given_up: Arc<AtomicBool>) -> Vec<String> {
    let filled = tokio::time::timeout(PAGE_TIME, fill(shared, rest, given_up)).await;
    let filled =
        filled.unwrap_or_else(|_| Err(failed("This takes too long", "It was given up. Ask for less, or try again.")));
    filled.unwrap_or_else(|why| vec![why.0])
}

async fn fill(shared: Shared, rest: Rest, given_up: Arc<AtomicBool>) -> Result<Vec<String>, Markup> {
    let turn = shared.scans.turn_if(rest.reads_sessions).await.map_err(|Busy| error::busy())?;
    let permit = shared.pages.clone().acquire_owned().await;
    let permit = permit.map_err(|_| failed("The server is stopping", "Start it again to go on."))?;
    let filled = tokio::task::spawn_blocking(move || {
        let _held = (turn, permit);
        let filled = (rest.fill)(&shared.site, &given_up);
        filled.iter().map(|piece| shared.site.masked(&piece.0)).collect()
    });
    filled
        .await
        .map_err(|_| failed("The rest of this page could not be made", "That is a fault of scrollback."))
}

fn failed(what: &str, why: &str) -> Markup {
    error::late(what, html! { p { (why) } })
}

fn theme_of(headers: &HeaderMap) -> Theme {
    guard::cookie(headers, "scrollback_theme").map_or(Theme::System, Theme::named)
}

async fn choose_theme(
    State(shared): State<Shared>,
    headers: HeaderMap,
    Form(form): Form<HashMap<String, String>>,
) -> Response {
    let theme = Theme::named(form.get("theme").map(String::as_str).unwrap_or_default());
    let mut response = StatusCode::SEE_OTHER.into_response();
    insert(&mut response, header::LOCATION, &shared.guard.own_path_before(&headers));
    let cookie = format!("scrollback_theme={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000", theme.name());
    insert(&mut response, header::SET_COOKIE, &cookie);
    response
}

/// The whole text of a part, as text.
async fn whole_part(
    State(shared): State<Shared>,
    Path((id, message, part)): Path<(String, String, String)>,
) -> Response {
    let Ok(permit) = shared.pages.clone().acquire_owned().await else { return stopping() };
    let read = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        part_of(&shared.site, &id, &message, &part)
    });
    let Ok(Some(part)) = read.await else { return plain(StatusCode::NOT_FOUND, "there is no such part\n") };
    let whole = match &part {
        Part::Text(part) => part.text.clone(),
        Part::Reasoning(part) => part.text.clone(),
        Part::File(part) => {
            file::decoded(&part.url).and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
        }
        other => tool_text(other),
    };
    let shown = text::shown(&whole[..whole.floor_char_boundary(PART_LIMIT_BYTES)]).into_owned();
    let mut response = shown.into_response();
    insert(&mut response, header::CONTENT_TYPE, "text/plain; charset=utf-8");
    insert(&mut response, header::CONTENT_SECURITY_POLICY, FILE_POLICY);
    response
}

/// What went into a call and came out of it.
fn tool_text(part: &Part) -> String {
    use scrollback::model::json;
    use scrollback::view::tool_view::{ToolView, result_text};
    let Part::Tool(call) = part else { return serde_json::to_string_pretty(part).unwrap_or_default() };
    if let ToolView::Shell(run) = ToolView::of(call) {
        return format!("$ {}\n{}", run.command, run.output);
    }
    let input = call.input().map(json::to_string_pretty).unwrap_or_default();
    let error = if let scrollback::ToolState::OutputError { error_text, .. } = &call.state { error_text } else { "" };
    format!("{} {input}\n\n{}{error}", call.name, call.output().map(result_text).unwrap_or_default())
}

/// A file that is part of a message: a picture is shown, anything else is only saved.
async fn file_of_message(
    State(shared): State<Shared>,
    Path((id, message, part)): Path<(String, String, String)>,
) -> Response {
    let Ok(permit) = shared.pages.clone().acquire_owned().await else { return stopping() };
    let read = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let (url, name) = match part_of(&shared.site, &id, &message, &part)? {
            Part::File(part) => (part.url, part.filename),
            Part::ReasoningFile(part) => (part.url, None),
            _ => return None,
        };
        Some((file::decoded(&url)?, name))
    });
    let Some((bytes, name)) = read.await.ok().flatten() else {
        return plain(StatusCode::NOT_FOUND, "there is no such file\n");
    };
    let picture = file::picture_kind_of(&bytes);
    let mut response = bytes.into_response();
    insert(&mut response, header::CONTENT_TYPE, picture.unwrap_or("application/octet-stream"));
    insert(&mut response, header::CONTENT_SECURITY_POLICY, FILE_POLICY);
    if picture.is_none() {
        let name = saved_name(name.as_deref().unwrap_or_default());
        insert(&mut response, header::CONTENT_DISPOSITION, &format!("attachment; filename=\"{name}\""));
    }
    response
}

/// The name of a file, as every system accepts it.
fn saved_name(name: &str) -> String {
    const NAME_CHARS: usize = 80;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = name.chars().rev().take(NAME_CHARS).map(|c| if is_plain(c) { c } else { '_' }).collect();
    let name: String = name.chars().rev().collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "file".to_owned() } else { name.to_owned() }
}

fn part_of(site: &Site, id: &str, message: &str, part: &str) -> Option<Part> {
    let part: usize = part.parse().ok()?;
    let shelf = site.catalogue.shelf();
    let Found::One(entry) = shelf.find(id) else { return None };
    let session = site.whole(&entry.source).ok()?;
    let record = session.find(message).ok()?;
    let mut heads = session.heads().map(|head| head.record);
    const HEADS_TRIED: usize = 50;
    let mut tried = session.head().into_iter().chain(heads.by_ref().take(HEADS_TRIED));
    tried.find_map(|head| {
        let branch = session.branch(head);
        let conversation = Conversation::new(&branch);
        let at = conversation.position(record)?;
        let holds = conversation.records(at).any(|own| own.order() == record.order());
        let mut message = conversation.message(at).filter(|_| holds)?.ok()?;
        (part < message.parts.len()).then(|| message.parts.swap_remove(part))
    })
}

/// The session as one file. What is wrong with it is said as a page, before its first byte.
async fn export_file(State(shared): State<Shared>, Path(id): Path<String>, uri: Uri, headers: HeaderMap) -> Response {
    let params = api::params(&uri);
    if let Some(wrong) = params.wrong(&[("to", Takes::One(&["html", "md"]))]) {
        return make(shared, uri, headers, move |_, _| wrong).await;
    }
    let is_markdown = params.get("to") == Some("md");
    let shelf = shared.site.catalogue.shelf();
    let Found::One(entry) = shelf.find(&id) else {
        return make(shared.clone(), uri, headers, move |_, site| session::with(&id, site, |_| error::no_page())).await;
    };
    let (source, name) = (entry.source.clone(), file_name(entry.row.id.as_str()));
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(4);
    let (begun_sender, begun) = oneshot::channel();
    let site = shared.site.clone();
    tokio::task::spawn_blocking(move || {
        let mut out = io::BufWriter::with_capacity(64 * 1024, Sent { sender, begun: Some(begun_sender) });
        let Err(error) = write_export(&site, &source, &params, is_markdown, &mut out) else { return };
        let sent = out.get_mut();
        match (sent.begun.take(), error) {
            (Some(begun), export::Error::Read(error)) => drop(begun.send(Err(error))),
            // The reader sees a file that ends too soon, and the connection says so.
            (_, error) => drop(sent.sender.blocking_send(Err(io::Error::other(error.to_string())))),
        }
    });
    if let Ok(Err(error)) = begun.await {
        return make(shared, uri, headers, move |_, _| error::unreadable(&error)).await;
    }
    let body = Body::from_stream(Received(receiver));
    let mut response = body.into_response();
    let ending = if is_markdown { "md" } else { "html" };
    let kind = if is_markdown { "text/markdown; charset=utf-8" } else { "text/html; charset=utf-8" };
    insert(&mut response, header::CONTENT_TYPE, kind);
    insert(&mut response, header::CONTENT_DISPOSITION, &format!("attachment; filename=\"{name}.{ending}\""));
    response
}

fn write_export(
    site: &Site,
    source: &scrollback::Source,
    params: &Params,
    is_markdown: bool,
    out: &mut dyn Write,
) -> Result<(), export::Error> {
    site.look_for(source)?;
    let session = site.open(source)?;
    let head = match params.get("head") {
        Some(head) => Some(session.find(head)?),
        None => session.head(),
    };
    let document = Document {
        session: &session,
        heads: head.into_iter().collect(),
        zone: &site.zone,
        now: (site.now)(),
        price: &*site.price,
        sub_agents: site,
    };
    match is_markdown {
        true => export::markdown(&document, out)?,
        false => export::html(&document, out)?,
    }
    Ok(out.flush()?)
}

/// A name that every system accepts.
fn file_name(id: &str) -> String {
    const NAME_CHARS: usize = 60;
    let safe: String = id
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .take(NAME_CHARS)
        .collect();
    format!("scrollback-{safe}")
}

/// Pieces of a file on their way to the reader.
struct Sent {
    sender: mpsc::Sender<io::Result<Bytes>>,
    /// Told with the first piece.
    begun: Option<oneshot::Sender<scrollback::Result<()>>>,
}

impl Write for Sent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(begun) = self.begun.take() {
            drop(begun.send(Ok(())));
        }
        let piece = Bytes::copy_from_slice(bytes);
        self.sender.blocking_send(Ok(piece)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn asset(kind: &'static str, bytes: &'static [u8]) -> Response {
    let mut response = bytes.into_response();
    insert(&mut response, header::CONTENT_TYPE, kind);
    insert(&mut response, header::CACHE_CONTROL, "no-cache");
    response
}

fn page(status: StatusCode, html: impl Into<Body>) -> Response {
    let mut response = (status, html.into()).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        insert(&mut response, header::RETRY_AFTER, RETRY_AFTER_SECONDS);
    }
    insert(&mut response, header::CONTENT_TYPE, "text/html; charset=utf-8");
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response {
    (status, text).into_response()
}

fn stopping() -> Response {
    unavailable("The server is stopping", "Start it again to go on.")
}

/// A page that needs nothing but a reason.
fn unavailable(what: &str, why: &str) -> Response {
    let body = html! { div.empty { h1 { (what) } p { (why) } } };
    page(StatusCode::SERVICE_UNAVAILABLE, shell::bare(what, body))
}

/// Sets a header; a value that cannot be one is left out.
fn insert(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Whether a method only reads.
fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
