//! The pages: a session as one file, and the first byte of pages of the local server over a whole home.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use super::{Job, ours, session, timed};
use crate::{Outcome, shell};

/// The session of the export rows.
const EXPORTED_BYTES: usize = 55 * 1000 * 1000;

/// The sum of everything that a page loads.
const ASSETS: [&str; 3] = ["/assets/style.css", "/assets/page.js", "/assets/icon.svg"];

pub(super) fn run(home: &Path) -> Outcome {
    let path = session("export", EXPORTED_BYTES)?;
    export("a 55 MB session", &path)?;
    // The home has a session of Claude Code of about the same size, which other programs read too.
    let sessions = largest_first(&home.join(".claude/projects"))?;
    let alike = sessions.iter().min_by_key(|(bytes, _)| bytes.abs_diff(EXPORTED_BYTES as u64));
    if let Some((bytes, path)) = alike {
        let what = format!("a Claude Code session of {} MB", bytes / 1_000_000);
        export(&what, path)?;
        peers(&what, path)?;
    }
    let (_, largest) = sessions.first().ok_or("the home has no session")?;
    served(home, largest)
}

fn export(what: &str, path: &Path) -> Outcome {
    let name = path.to_string_lossy();
    for (how, args) in [
        ("without masking (goal: 0.6 s and 128 MiB for 55 MB)", &["export", &name, "--no-redact"][..]),
        ("masked", &["export", &name]),
        ("as Markdown, without masking", &["export", &name, "--to", "md", "--no-redact"]),
    ] {
        let run = timed(&ours(Path::new("/nonexistent"), args))?;
        println!("| export of {what}, {how} | | | {:.3} s | | {} MiB |", run.seconds, run.rss_mib);
    }
    Ok(())
}

/// Other programs that make pages of a session, where they are installed.
fn peers(what: &str, path: &Path) -> Outcome {
    let out = shell::root().join("target/bench/peer-pages");
    let (session, folder) = (path.to_string_lossy().into_owned(), out.to_string_lossy().into_owned());
    for (program, arguments) in [
        ("claude-code-transcripts", vec!["json".to_owned(), session.clone(), "-o".to_owned(), folder.clone()]),
        ("claude-code-log", vec![session, "-o".to_owned(), format!("{folder}/log.html")]),
    ] {
        if out.exists() {
            fs::remove_dir_all(&out)?;
        }
        fs::create_dir_all(&out)?;
        let words = [program.to_owned()].into_iter().chain(arguments).collect();
        let cell = match timed(&Job { words, env: Vec::new() }) {
            Err(_) => format!("{program}: not installed, or it failed"),
            Ok(run) => {
                let files = fs::read_dir(&out)?.filter_map(|file| file.ok()?.metadata().ok());
                let bytes: u64 = files.map(|file| file.len()).sum();
                let answer =
                    if bytes == 0 { "no answer".to_owned() } else { format!("{} MB of pages", bytes / 1_000_000) };
                format!("{program}: {:.1} s, {} MiB, {answer}", run.seconds, run.rss_mib)
            }
        };
        println!("| pages of {what} by others | | {cell} | | | |");
    }
    Ok(())
}

/// The first byte and the size of every page, and the memory of the server.
fn served(home: &Path, largest: &Path) -> Outcome {
    timed(&ours(home, &["index"]))?;
    let mut server = Command::new(shell::root().join("target/dist/scrollback"))
        .arg("serve")
        .env("HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let measured = measure(&mut server, largest);
    server.kill()?;
    server.wait()?;
    measured
}

fn measure(server: &mut std::process::Child, largest: &Path) -> Outcome {
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().ok_or("no output")?).read_line(&mut line)?;
    let address = line.trim().strip_prefix("http://").and_then(|rest| rest.split_once("/?token="));
    let (host, token) = address.ok_or_else(|| format!("no address: {line}"))?;
    // Until everything was looked at and counted, which a reader does not wait for.
    for _ in 0..600 {
        let (_, page) = first_byte(host, token, "/stats?since=all")?;
        if !String::from_utf8_lossy(&page).contains("still being counted") {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    let id = largest.file_stem().unwrap_or_default().to_string_lossy();
    let of_session = |what: &str, path: &str| (format!("{what} of the largest session"), format!("/s/{id}{path}"));
    let pages = [
        ("the list".to_owned(), "/".to_owned()),
        ("the list by project".to_owned(), "/?by=project".to_owned()),
        of_session("the newest page", ""),
        of_session("the first page", "?first=1"),
        of_session("the tree", "/tree"),
        of_session("the files", "/files"),
        of_session("the replay", "/replay"),
        ("a search for a common word".to_owned(), "/search?q=error".to_owned()),
        ("stats".to_owned(), "/stats?since=all".to_owned()),
    ];
    for (what, path) in pages {
        let (first, page) = first_byte(host, token, &path)?;
        let mut best = first;
        for _ in 0..4 {
            best = best.min(first_byte(host, token, &path)?.0);
        }
        println!(
            "| first byte of {what} (goal: 50 ms, 300 KB) | | | {:.1} ms, at first {:.1} ms; {} KB | | |",
            best * 1000.0,
            first * 1000.0,
            page.len() / 1000
        );
    }
    let assets: usize = ASSETS.iter().filter_map(|path| Some(first_byte(host, token, path).ok()?.1.len())).sum();
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap_or_default();
    let field = |name: &str| {
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        value.unwrap_or(0) / 1024
    };
    println!(
        "| the server after that (goal: 128 MiB, assets 60 KB) | | | assets {:.1} KB | | {} MiB, at most {} MiB |",
        assets as f64 / 1000.0,
        field("VmRSS:"),
        field("VmHWM:")
    );
    Ok(())
}

fn first_byte(host: &str, token: &str, path: &str) -> Result<(f64, Vec<u8>), Box<dyn std::error::Error>> {
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
    Ok((seconds, rest))
}

fn largest_first(folder: &Path) -> Result<Vec<(u64, PathBuf)>, Box<dyn std::error::Error>> {
    let mut sessions = Vec::new();
    for project in fs::read_dir(folder)?.filter_map(Result::ok).filter(|project| project.path().is_dir()) {
        for file in fs::read_dir(project.path())?.filter_map(Result::ok) {
            sessions.push((file.metadata()?.len(), file.path()));
        }
    }
    sessions.retain(|(_, path)| path.extension().is_some_and(|ending| ending == "jsonl"));
    sessions.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    Ok(sessions)
}
