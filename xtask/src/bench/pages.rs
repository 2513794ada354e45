//! The pages: a session as one file, and the first byte of pages of the local server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::{HISTORY_BYTES, ours, session, timed};
use crate::{Outcome, shell};

/// The session of the export rows.
const EXPORTED_BYTES: usize = 55 * 1000 * 1000;

pub(super) fn run() -> Outcome {
    let path = session("export", EXPORTED_BYTES)?;
    let name = path.to_string_lossy().into_owned();
    for (what, args) in [
        ("without masking (goal: 0.6 s, 128 MiB)", &["export", &name, "--no-redact"][..]),
        ("masked", &["export", &name]),
        ("as Markdown, without masking", &["export", &name, "--to", "md", "--no-redact"]),
    ] {
        let run = timed(&ours(Path::new("/nonexistent"), args))?;
        println!("| export of a 55 MB session, {what} | | | {:.3} s | | {} MiB |", run.seconds, run.rss_mib);
    }
    served()
}

/// The first byte of pages about a 100 MB session, and the memory of the server.
fn served() -> Outcome {
    session("history", HISTORY_BYTES)?;
    let mut server = Command::new(shell::root().join("target/release/scrollback"))
        .args(["serve", "--store"])
        .arg(shell::root().join("target/bench/history"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().ok_or("no output")?).read_line(&mut line)?;
    let address = line.trim().strip_prefix("http://").and_then(|rest| rest.split_once("/?token="));
    let (host, token) = address.ok_or_else(|| format!("no address: {line}"))?;
    for (what, path) in [
        ("the list", "/"),
        ("the newest page of a 100 MB session", "/s/history"),
        ("its first page", "/s/history?first=1"),
        ("its tree", "/s/history/tree"),
        ("search", "/search?q=harbour"),
    ] {
        let mut best = f64::MAX;
        for _ in 0..3 {
            best = best.min(first_byte(host, token, path)?);
        }
        println!("| first byte of {what} (goal: 50 ms) | | | {:.1} ms | | |", best * 1000.0);
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap_or_default();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    println!("| the server after that (goal: 128 MiB) | | | | | {} MiB |", peak.unwrap_or(0) / 1024);
    server.kill()?;
    server.wait()?;
    Ok(())
}

fn first_byte(host: &str, token: &str, path: &str) -> Result<f64, Box<dyn std::error::Error>> {
    let mut stream = TcpStream::connect(host)?;
    let start = Instant::now();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )?;
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest)?;
    if !rest.starts_with(b"TTP/1.1 200") {
        return Err(format!("{path}: {}", String::from_utf8_lossy(&rest[..rest.len().min(80)])).into());
    }
    Ok(seconds)
}
