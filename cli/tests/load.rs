//! Many readers of one session that grows fast. `SCROLLBACK_TORTURE=1 cargo test --release --test load -- --nocapture` prints the figures
//! of docs/api.md.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
#![allow(clippy::print_stdout, reason = "the figures")]

mod support;

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use support::TestEnv;

/// Readers, lines a second, and seconds: on every push, and for the figures.
const PUSH: [usize; 3] = [40, 200, 2];
const FULL: [usize; 3] = [200, 1_000, 10];

/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(120);

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64
}

fn resident_kb(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn every_reader_of_a_session_that_grows_fast_gets_every_message() {
    let [readers, lines_per_second, seconds] =
        if std::env::var_os("SCROLLBACK_TORTURE").is_some() { FULL } else { PUSH };
    let env = TestEnv::new();
    let folder = env.home().join(".local/share/scrollback/sessions/load");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("messages.jsonl");
    let line = |number: usize| {
        let kind = if number.is_multiple_of(2) { "user" } else { "assistant" };
        let parent = number.checked_sub(1).map(|before| format!("m{before}"));
        let line = json!({"type": kind, "uuid": format!("m{number}"), "parentUuid": parent, "sessionId": "load", "format": 2,
                          "timestamp": "2026-11-01T10:00:00Z", "message": {"role": kind, "content": format!("written {}.", now_us())}});
        format!("{line}\n")
    };
    fs::write(&path, line(0)).unwrap();
    let mut child = env.command(&["serve", "--port", "0"]).stdin(Stdio::null()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
    let (host, token) = address.trim().strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    let (host, token) = (host.to_owned(), token.to_owned());
    let before = resident_kb(&child);
    let (stop, events) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let threads: Vec<_> = (0..readers)
        .map(|_| {
            let (host, token, stop, events) = (host.clone(), token.clone(), stop.clone(), events.clone());
            std::thread::spawn(move || {
                let mut stream = TcpStream::connect(&host).unwrap();
                stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
                let request = format!("GET /api/v1/sessions/load/events?parts=message HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
                stream.write_all(request.as_bytes()).unwrap();
                let (mut reader, mut line, mut late) = (BufReader::new(stream), Vec::new(), Vec::new());
                while !stop.load(Ordering::Relaxed) {
                    match reader.read_until(b'\n', &mut line) {
                        Ok(0) => panic!("the server ended the stream"),
                        Ok(_) if line.ends_with(b"\n") => {
                            let text = String::from_utf8_lossy(&line);
                            if let Some((_, written)) = text.split_once("written ") {
                                let written: u64 = written.split('.').next().unwrap().parse().unwrap();
                                late.push(now_us().saturating_sub(written));
                                events.fetch_add(1, Ordering::Relaxed);
                            }
                            line.clear();
                        }
                        // Nothing came for a while.
                        Ok(_) | Err(_) => {}
                    }
                }
                late
            })
        })
        .collect();
    std::thread::sleep(Duration::from_secs(2));
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let began = std::time::Instant::now();
    for number in 1..=lines_per_second * seconds {
        file.write_all(line(number).as_bytes()).unwrap();
        let due = Duration::from_secs_f64(number as f64 / lines_per_second as f64);
        std::thread::sleep(due.saturating_sub(began.elapsed()));
    }
    let took = began.elapsed();
    let all = (readers * lines_per_second * seconds) as u64;
    while events.load(Ordering::Relaxed) < all && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(100));
    }
    let after = resident_kb(&child);
    stop.store(true, Ordering::Relaxed);
    let mut late: Vec<u64> = threads.into_iter().flat_map(|reader| reader.join().unwrap()).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    late.sort_unstable();
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize] as f64 / 1000.0;
    println!(
        "{readers} readers, {lines_per_second} lines/s for {:.1} s: {:.0} events/s, latency p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms; {} of {} events; resident {} KB before, {} KB after: {:.0} KB a reader",
        took.as_secs_f64(),
        events.load(Ordering::Relaxed) as f64 / took.as_secs_f64(),
        at(0.5),
        at(0.95),
        at(0.99),
        late.len(),
        readers * lines_per_second * seconds,
        before,
        after,
        after.saturating_sub(before) as f64 / readers as f64
    );
    assert_eq!(late.len(), readers * lines_per_second * seconds, "every reader gets every message");
}
