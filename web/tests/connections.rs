//! Connections that send nothing, too much or too slowly: the reader of the pages still gets them.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use scrollback_web::server::{self, Guard, Listener, Stop};
use support::{Served, talk};

struct Running {
    port: u16,
    guard: Arc<Guard>,
    stop: Stop,
    _served: Served,
}

impl Running {
    fn start() -> Running {
        let served = Served::of(&[("sa", talk("hello", "world"))]);
        let listener = Listener::on([127, 0, 0, 1].into(), 0).unwrap();
        let port = listener.port();
        let guard = Arc::new(Guard::new(port, None).unwrap());
        let stop = Stop::new();
        let (router, stopped) = (server::router(served.site.clone(), guard.clone()), stop.clone());
        std::thread::spawn(move || listener.serve(router, &stopped).unwrap());
        Running { port, guard, stop, _served: served }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// What a whole request is answered with.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        // A server that refuses may close before everything was sent.
        drop(stream.write_all(request.as_bytes()));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn request(&self, path: &str, more: &str) -> String {
        let (port, token) = (self.port, self.guard.token().as_str());
        format!(
            "GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{more}\r\n"
        )
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.now();
    }
}

#[test]
fn silent_connections_do_not_keep_the_reader_out() {
    let running = Running::start();
    let silent: Vec<TcpStream> = (0..400).map(|_| running.connect()).collect();
    let answer = running.ask(&running.request("/s/sa", ""));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("world"), "{answer}");
    // Those that went for others are closed; none of them learned anything.
    let mut closed = 0;
    for mut stream in silent {
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let mut said = Vec::new();
        match stream.read_to_end(&mut said) {
            Ok(_) => closed += 1,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => closed += 1,
            Err(_) => {}
        }
        assert!(said.is_empty(), "{}", String::from_utf8_lossy(&said));
    }
    assert!(closed >= 100, "{closed}");
}

#[test]
fn large_headers_and_half_requests_are_refused_in_a_sentence() {
    let running = Running::start();
    let huge = format!("X-Huge: {}\r\n", "a".repeat(100_000));
    assert!(running.ask(&running.request("/", &huge)).starts_with("HTTP/1.1 431"));
    let many: String = (0..2_000).map(|at| format!("X-{at}: a\r\n")).collect();
    assert!(running.ask(&running.request("/", &many)).starts_with("HTTP/1.1 431"));
    let long = format!("/search?q={}", "a".repeat(100_000));
    let refused = running.ask(&running.request(&long, ""));
    assert!(refused.starts_with("HTTP/1.1 414") || refused.starts_with("HTTP/1.1 431"), "{refused}");
    assert!(running.ask("\u{16}\u{3}\u{1} not http\r\n\r\n").starts_with("HTTP/1.1 400"));
    let answer = running.ask(&running.request("/", ""));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
