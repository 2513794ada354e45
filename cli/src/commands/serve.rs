//! `serve`: the pages, for this machine's browser.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};

use scrollback::model::project;
use scrollback::redact::Redactor;
use scrollback::view::find::Places;
use scrollback_index::{Archive, SqliteIndex};
use scrollback_web::Site;
use scrollback_web::catalogue::{self, Catalogue, Selection};
use scrollback_web::server::{self, Guard, Listener, Stop};
use serde_json::json;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::prices::Prices;
use crate::redaction;
use crate::session::{archive, scope};
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
}

const EXAMPLES: &str = "\
Examples:
  scrollback serve --open
  scrollback --demo serve
  scrollback serve --project . --port 8080";

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
    let listener = match args.port {
        Some(port) => Listener::on(address, port),
        None => Listener::on_or_after(address, PORT),
    };
    let listener = listener.map_err(|error| cannot_listen(address, args.port, &error))?;
    let public = public_host(args, address, listener.port());
    let guard = Guard::new(listener.port(), public.as_deref())
        .map_err(|error| Failure::new(FailureKind::Io, format!("no random numbers: {error}")))?;
    let site = Arc::new(site(global, ctx)?);
    catalogue::list(&site);
    let host = match public.filter(|_| args.public_host.is_some()) {
        Some(host) => host,
        None if address.is_loopback() || address.is_unspecified() => format!("127.0.0.1:{}", listener.port()),
        None => format!("{}:{}", shown(address), listener.port()),
    };
    let url = format!("http://{host}/?token={}", guard.token().as_str());
    let stop = Stop::new();
    let stopper = stop.clone();
    on_interrupt(move || {
        stopper.now();
        true
    })?;
    if ctx.json {
        ctx.print_json(&json!({ "url": url }))?;
    } else {
        ctx.line(&url)?;
    }
    ctx.out.flush()?;
    if args.open {
        open_browser(&url, ctx)?;
    }
    let watching = catalogue::keep(&site);
    let served = listener.serve(server::router(site, Arc::new(guard)), &stop);
    watching.interrupt();
    served?;
    Ok(ExitCode::SUCCESS)
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
    let now = ctx.host().now;
    Box::new(move || {
        if let (Some(path), Some(mask)) = (&path, &mask)
            && let Ok(index) = SqliteIndex::open(path, mask.fingerprint())
        {
            return Archive::with_index(places.clone(), now(), Box::new(index), mask.clone());
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

/// The name that is also answered to: the one that was typed, or that of another address than this machine's own.
fn public_host(args: &ServeArgs, address: IpAddr, port: u16) -> Option<String> {
    let typed = args.public_host.clone();
    typed
        .or_else(|| (!address.is_loopback() && !address.is_unspecified()).then(|| format!("{}:{port}", shown(address))))
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
    failure.hint("another program has the port; leave out --port to use the next free one")
}

/// Opens the browser; without one, the address is there to be copied.
fn open_browser(url: &str, ctx: &mut Ctx) -> Result<(), Failure> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let opened = Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match opened {
        Ok(_) => Ok(()),
        Err(_) => ctx.note("No browser could be opened; copy the address."),
    }
}
