//! `serve`: the pages, for this machine's browser.

mod record;
mod replay;

use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};

use scrollback::model::project;
use scrollback::redact::Redactor;
use scrollback::view::find::{Places, SessionName};
use scrollback_index::{Archive, SqliteIndex};
use scrollback_web::Site;
use scrollback_web::catalogue::{self, Catalogue, Selection};
use scrollback_web::records;
use scrollback_web::scripted;
use scrollback_web::server::{self, Guard, Listener, Stop};
use serde_json::json;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::heap;
use crate::prices::Prices;
use crate::redaction;
use crate::session::{archive, scope, writable};
use crate::terminal::clean;
use crate::terminal::interrupt::on_interrupt;

/// Open your sessions in the browser
///
/// Prints one address, which ends in a token: it opens the pages for one browser, until Ctrl-C stops the server. Only this machine can reach
/// it, nothing is ever loaded from elsewhere, and secrets are masked. It shows every project, or with --project one.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Open the browser
    #[arg(long)]
    open: bool,
    /// Listen on this port (default: 4747, or the next free one)
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Listen on this address instead of 127.0.0.1: others on the network can then ask, with the token
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Answer also to this name, with its port if it is not 80, such as that of a proxy
    #[arg(long, value_name = "HOST[:PORT]")]
    public_host: Option<String>,
    /// Be the model of this session: answer an agent's requests with the recorded answers
    ///
    /// The addresses are those of Anthropic (/v1/messages), OpenAI (/v1/chat/completions, /v1/responses) and Gemini
    /// (/v1beta/models/MODEL:streamGenerateContent); the token is the key. A request is answered if it has the items that `history` gives for
    /// that point, but for context, ids and dates; else it is refused with 409 and the difference. docs/replaying.md has an example.
    #[arg(long, value_name = "SESSION", help_heading = "Replay")]
    replay: Option<SessionName>,
    /// Answer also requests that differ from the session: the one with as many answers before it
    #[arg(long, requires = "replay", help_heading = "Replay")]
    loose: bool,
    /// Let programs add records to native sessions: POST /api/v1/sessions/ID/records, with the token
    #[arg(long)]
    allow_record: bool,
    /// Let pages of this site ask the HTTP API, with the token (can be repeated)
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  scrollback serve --open
  scrollback --demo serve
  scrollback serve --project . --port 8080
  scrollback serve --replay @ --port 8080
  scrollback serve --allow-origin http://localhost:5173";

/// The usual port.
const PORT: u16 = 4747;

pub(crate) fn run(args: &ServeArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let address = args.bind.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    if ctx.is_not_redacting() && !address.is_loopback() {
        let failure = Failure::new(
            FailureKind::Usage,
            format!("--no-redact shows secrets, and {address} is not only this machine"),
        );
        return Err(failure.hint("leave out --bind or --no-redact"));
    }
    if args.allow_record {
        writable::refuse_demo(ctx)?;
    }
    if let Some(host) = args.public_host.as_deref().filter(|host| !is_host(host)) {
        let failure =
            Failure::new(FailureKind::Usage, format!("--public-host: {:?} is no name of a host", clean::line(host)));
        return Err(failure.hint("use a name, with its port if it is not 80: tide.example.org:8080"));
    }
    args.allow_origin.iter().try_for_each(|origin| check_origin(origin))?;
    let listener = match args.port {
        Some(port) => Listener::on(address, port),
        None => Listener::on_or_after(address, PORT),
    };
    let listener = listener.map_err(|error| cannot_listen(address, args.port, &error))?;
    let public = public_host(args, address, listener.port());
    let guard = Guard::new(listener.port(), public.as_deref())
        .map_err(|error| Failure::new(FailureKind::Io, format!("no random numbers: {error}")))?
        .allowing(args.allow_origin.clone());
    let site = Arc::new(site(global, ctx)?);
    catalogue::list(&site);
    let host = match public.filter(|_| args.public_host.is_some()) {
        Some(host) => host,
        None if address.is_unspecified() || address == IpAddr::V4(Ipv4Addr::LOCALHOST) => {
            format!("127.0.0.1:{}", listener.port())
        }
        None => format!("{}:{}", shown(address), listener.port()),
    };
    let url = format!("http://{host}/?token={}", guard.token().as_str());
    let guard = Arc::new(guard);
    let recorder = args.allow_record.then(|| record::recorder(global));
    let records = records::router(site.clone(), guard.clone(), recorder);
    let mut router = server::router_with(site.clone(), guard.clone(), records);
    let model = args.replay.as_ref().map(|name| replay::model(name, args.loose, &site, global, ctx)).transpose()?;
    if let Some(model) = &model {
        router = router.merge(scripted::router(model.clone(), guard.clone()));
    }
    let stop = Stop::new();
    let stopper = stop.clone();
    on_interrupt(move || {
        stopper.now();
        true
    })?;
    let mut printed = json!({ "url": url });
    if let Some(model) = &model {
        printed["replay"] = json!({"token": guard.token().as_str(), "answers": model.script.len()});
    }
    // The token is no secret to whoever started the server.
    if ctx.json {
        ctx.stream_json(&printed)?;
    } else {
        ctx.line(&url)?;
    }
    if let Some(model) = &model {
        replay::say_how(model, &host, guard.token().as_str(), ctx)?;
    }
    ctx.out.flush()?;
    if args.open {
        open_browser(&url, ctx)?;
    }
    let watching = catalogue::keep(&site);
    let served = listener.serve(router, &stop);
    watching.interrupt();
    served?;
    if let Some(model) = &model {
        replay::report(model, ctx)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a text is exactly what a browser sends as `Origin`.
fn check_origin(origin: &str) -> Result<(), Failure> {
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | ':' | '[' | ']');
    if !host.is_empty() && host.chars().all(is_plain) {
        return Ok(());
    }
    let failure = Failure::new(FailureKind::Usage, format!("--allow-origin: {:?} is no origin", clean::line(origin)));
    Err(failure.hint("use scheme, host and port as a browser sends them: http://localhost:5173"))
}

fn site(global: &Global, ctx: &mut Ctx) -> Result<Site, Failure> {
    let prices = Prices::read(ctx)?;
    let mask = if ctx.is_not_redacting() { None } else { Some(redaction::for_reading(ctx)?) };
    let places = Places { mask: mask.clone(), ..scope::places(global, ctx)? };
    let scope = scope::scope(global, ctx)?;
    let typed = global.project.as_ref().map(|typed| project::of(&project::settled(&ctx.home.cwd, typed)));
    let hidden = ctx.config.texts("serve.hide");
    let host = ctx.host();
    let now = host.now.clone();
    Ok(Site {
        open_archive: open_archive(places.clone(), mask, global, ctx),
        places,
        selection: Selection {
            project: typed,
            since: scope.since,
            until: scope.until,
            hidden: hidden.iter().map(|path| in_home(path, &ctx.home.dir)).collect(),
        },
        zone: ctx.zone.clone(),
        now: Box::new(move || now()),
        data: Some(ctx.home.data()).filter(|data| data.is_absolute()),
        host,
        price: Box::new(move |model, usage| prices.cost(model, usage)),
        catalogue: Catalogue::default(),
        opened: Mutex::default(),
    })
}

/// Opens an archive whenever one is needed: with the user's index where that may be used.
fn open_archive(
    places: Places,
    mask: Option<Arc<Redactor>>,
    global: &Global,
    ctx: &Ctx,
) -> Box<dyn Fn() -> Archive + Send + Sync> {
    let is_indexed = !ctx.demo && global.store.is_none();
    let path = archive::path(ctx).filter(|_| is_indexed);
    let excluded = archive::excluded(ctx);
    let now = ctx.host().now;
    Box::new(move || {
        if let (Some(path), Some(mask)) = (&path, &mask)
            && let Ok(index) = SqliteIndex::open(path, mask.fingerprint())
        {
            return Archive::with_index(places.clone(), now(), Box::new(index), mask.clone())
                .excluding(excluded.clone());
        }
        Archive::new(places.clone(), now())
    })
}

fn in_home(path: &str, home: &Path) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(below) => home.join(below),
        None => PathBuf::from(path),
    }
}

/// The name that is also answered to: the one that was typed, or that of an address besides 127.0.0.1 and ::1.
fn public_host(args: &ServeArgs, address: IpAddr, port: u16) -> Option<String> {
    let known = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let is_other = !address.is_unspecified() && !known.contains(&address);
    args.public_host.clone().or_else(|| is_other.then(|| format!("{}:{port}", shown(address))))
}

/// Whether this can stand before the path of a web address.
fn is_host(host: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':' | b'[' | b']' | b'_');
    !host.is_empty() && host.bytes().all(is_part)
}

/// An address as it stands in a web address.
fn shown(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

fn cannot_listen(address: IpAddr, port: Option<u16>, error: &std::io::Error) -> Failure {
    let port = port.unwrap_or(PORT);
    let failure = Failure::new(FailureKind::Usage, format!("cannot listen on {address} port {port}: {error}"));
    match error.kind() {
        ErrorKind::AddrInUse => failure.hint("another program has the port; leave out --port to use the next free one"),
        ErrorKind::AddrNotAvailable => failure.hint("this machine does not have that address; leave out --bind"),
        ErrorKind::PermissionDenied => failure.hint("use a port above 1023"),
        _ => failure,
    }
}

/// Opens the browser; without one, the address is there to be copied.
fn open_browser(url: &str, ctx: &mut Ctx) -> Result<(), Failure> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut opening = Command::new(program);
    for (name, _) in heap::SETTINGS {
        opening.env_remove(name);
    }
    let opened = opening.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    match opened {
        Ok(_) => Ok(()),
        Err(_) => ctx.note("No browser could be opened; copy the address."),
    }
}
