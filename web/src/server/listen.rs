//! Connections: how many there may be, how long they may take, and how the server stops.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// How many connections there are at once. A browser opens six; a further one is refused.
const CONNECTIONS: usize = 256;

/// How long a request may take to arrive, and a connection may wait for the next one.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// How long a connection may live: whoever reads nothing does not hold it for ever.
const CONNECTION_TIME: Duration = Duration::from_secs(300);

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
            .worker_threads(2)
            .max_blocking_threads(16)
            .enable_all()
            .build()?;
        let mut stopped = stop.0.subscribe();
        let served = runtime.block_on(async {
            let listener = TcpListener::from_std(self.listener)?;
            let places = Arc::new(Semaphore::new(CONNECTIONS));
            loop {
                tokio::select! {
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => take(stream, &places, &router),
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

/// Answers one connection, if there is a place for it.
fn take(mut stream: TcpStream, places: &Arc<Semaphore>, router: &Router) {
    let Ok(place) = places.clone().try_acquire_owned() else {
        tokio::spawn(
            async move { drop(tokio::time::timeout(Duration::from_secs(1), stream.write_all(REFUSAL)).await) },
        );
        return;
    };
    let service = TowerToHyperService::new(router.clone());
    tokio::spawn(async move {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .max_buf_size(HEADER_LIMIT_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        // How a connection ends is the reader's business.
        drop(tokio::time::timeout(CONNECTION_TIME, connection).await);
        drop(place);
    });
}
