//! `serve` as a process on a port, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::TestEnv;

/// A server that runs.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) port: u16,
    pub(crate) token: String,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.head, self.body))
    }
}

impl Server {
    /// Starts it; standard error is kept, or piped to [`Server::stop`].
    pub(crate) fn start(env: &TestEnv, args: &[&str]) -> Server {
        let mut child = env.command(args).stdin(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.split_once("/?token="));
        let (host, token) = address.unwrap_or_else(|| panic!("{line:?} is no address"));
        let port = host.strip_prefix("127.0.0.1:").unwrap().parse().unwrap();
        Server { child, port, token: token.to_owned() }
    }

    /// Asks with these headers and this body.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
            self.port,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        // A server that refuses a large body may close before it has read it.
        drop(stream.write_all(body.as_bytes()));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// Sends a body with the token as a bearer.
    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.ask("POST", path, &[&self.bearer()], body)
    }

    /// The header with the cookie that a browser gets for the token.
    pub(crate) fn cookie(&self) -> String {
        let entered = self.ask("GET", &format!("/?token={}", self.token), &[], "").head;
        let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        format!("Cookie: {}", cookie.split(';').next().unwrap())
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    /// Presses Ctrl-C; the exit code, and what was printed on standard error.
    pub(crate) fn stop(mut self) -> (Option<i32>, String) {
        let status = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
        let mut printed = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
        (self.child.wait().unwrap().code(), printed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that was stopped is gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
