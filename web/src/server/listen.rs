//! Connections: how many there may be, how long they may take, and how the server stops.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::patience::Patient;

/// How many connections there are at once. A browser opens six. For a further one, the oldest goes that never asked anything.
const CONNECTIONS: usize = 256;

/// How long a request may take to arrive, and a connection may wait for the next one.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// How long a reader may take nothing of an answer. One who goes on reading may stay as long as they like.
const STALL_TIME: Duration = Duration::from_secs(30);

/// The largest request line with its headers.
const HEADER_LIMIT_BYTES: usize = 32 * 1024;

/// How many ports after the usual one are tried.
const PORTS_TRIED: u16 = 100;

const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 21\r\n\r\ntoo many connections\n";

/// A port that is open and waits.
pub struct Listener {
    listener: std::net::TcpListener,
    address: SocketAddr,
}

/// Stops a server from another thread.
#[derive(Clone)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// Something that stops nothing yet.
    pub fn new() -> Stop {
        Stop(watch::Sender::new(false))
    }

    /// Stops it.
    pub fn now(&self) {
        self.0.send_replace(true);
    }
}

impl Default for Stop {
    fn default() -> Stop {
        Stop::new()
    }
}

impl Listener {
    /// Opens this port.
    pub fn on(address: IpAddr, port: u16) -> io::Result<Listener> {
        let listener = std::net::TcpListener::bind((address, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Listener { listener, address })
    }

    /// Opens this port, or the next one that is free.
    pub fn on_or_after(address: IpAddr, port: u16) -> io::Result<Listener> {
        let mut last = Err(io::ErrorKind::AddrInUse.into());
        for port in port..=port.saturating_add(PORTS_TRIED) {
            last = Listener::on(address, port);
            match &last {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Ok(_) | Err(_) => break,
            }
        }
        last
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Answers requests until it is stopped. Needs a thread of its own.
    pub fn serve(self, router: Router, stop: &Stop) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(16)
            .enable_all()
            .build()?;
        let mut stopped = stop.0.subscribe();
        let served = runtime.block_on(async {
            let listener = TcpListener::from_std(self.listener)?;
            let mut seats: Vec<Seat> = Vec::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => take(stream, &mut seats, &router),
                        // A connection that is gone already, or too many open files: the next one may work.
                        Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                    },
                    _ = stopped.wait_for(|stopped| *stopped) => return Ok(()),
                }
            }
        });
        // Pages in the making are not waited for.
        runtime.shutdown_background();
        served
    }
}

/// A connection that is answered.
struct Seat {
    task: AbortHandle,
    /// Whether it has asked something that it may ask.
    is_known: Arc<AtomicBool>,
}

/// Answers one connection, if there is a place for it or one who said nothing yet can go.
fn take(mut stream: TcpStream, seats: &mut Vec<Seat>, router: &Router) {
    seats.retain(|seat| !seat.task.is_finished());
    if seats.len() >= CONNECTIONS {
        match seats.iter().position(|seat| !seat.is_known.load(Ordering::Relaxed)) {
            Some(silent) => seats.remove(silent).task.abort(),
            None => {
                tokio::spawn(async move {
                    drop(tokio::time::timeout(Duration::from_secs(1), stream.write_all(REFUSAL)).await);
                });
                return;
            }
        }
    }
    let is_known = Arc::new(AtomicBool::new(false));
    let (known, service) = (is_known.clone(), TowerToHyperService::new(router.clone()));
    let service = service_fn(move |request: Request<Incoming>| {
        let is_asset = request.uri().path().starts_with("/assets/");
        let (known, answer) = (known.clone(), service.call(request));
        async move {
            let answer = answer.await?;
            let is_let_in = !matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            known.fetch_or(is_let_in && !is_asset, Ordering::Relaxed);
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    let task = tokio::spawn(async move {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .max_buf_size(HEADER_LIMIT_BYTES)
            .serve_connection(TokioIo::new(Patient::new(stream, STALL_TIME)), service);
        // How a connection ends is the reader's business.
        drop(connection.await);
    });
    seats.push(Seat { task: task.abort_handle(), is_known });
}
