//! Connections that send nothing, too much or too slowly: the reader of the pages still gets them.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use support::{Running, Served, talk};

fn start() -> Running {
    Running::of(Served::of(&[("sa", talk("hello", "world"))]))
}

impl Running {
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

#[test]
fn silent_connections_do_not_keep_the_reader_out() {
    let running = start();
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
    let running = start();
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

#[test]
fn searches_that_read_every_session_keep_no_other_page_waiting_and_stop_when_nobody_waits() {
    let long = "The repeated hour of the tide. ".repeat(3_000);
    let names: Vec<String> = (0..120).map(|at| format!("s{at}")).collect();
    let sessions: Vec<_> = names.iter().map(|name| (name.as_str(), talk("hello", &long))).collect();
    let running = Running::of(Served::of(&sessions));
    let search = |at: usize| running.request(&format!("/search?q=/qq{at}%5Cw%2B/"), "");
    let began = Instant::now();
    assert!(running.ask(&search(0)).starts_with("HTTP/1.1 200"));
    let one = began.elapsed();
    let waiting: Vec<TcpStream> = (1..9)
        .map(|at| {
            let mut stream = running.connect();
            stream.write_all(search(at).as_bytes()).unwrap();
            stream
        })
        .collect();
    std::thread::sleep(one / 4);
    let began = Instant::now();
    assert!(running.ask(&running.request("/s/s1", "")).starts_with("HTTP/1.1 200"));
    assert!(began.elapsed() < one * 3, "{:?}, and a search takes {one:?}", began.elapsed());
    drop(waiting);
    let began = Instant::now();
    assert!(running.ask(&search(9)).starts_with("HTTP/1.1 200"));
    assert!(began.elapsed() < one * 4, "{:?}, and a search takes {one:?}", began.elapsed());
}
