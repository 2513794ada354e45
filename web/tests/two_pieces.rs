//! Pages that are sent in two pieces: the first one before the answer is known, and what fails later is said in the page.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use scrollback_web::Site;
use serde_json::json;
use support::{PORT, Running, Served, record, talk};

/// A piece that does not come before this was not sent: less than the server gives the rest of a page.
const PATIENCE: Duration = Duration::from_secs(20);

/// A session with a change of a file.
fn served() -> Served {
    let mut lines = talk("Mend the reader.", "I edit.");
    lines[1]["message"]["toolCalls"] = json!([{"id": "c1", "name": "edit_file",
        "arguments": {"file_path": "/w/a.rs", "old_string": "one", "new_string": "two"}}]);
    let mut result = record("tool_result", "r1", Some("a1"), json!(null));
    result.as_object_mut().unwrap().remove("message");
    result["toolResults"] = json!([{"toolCallId": "c1", "toolName": "edit_file", "content": "ok", "success": true}]);
    lines.push(result);
    Served::of(&[("sa", lines)])
}

fn site(served: &mut Served) -> &mut Site {
    Arc::get_mut(&mut served.site).unwrap()
}

/// An answer that arrives.
struct Arriving {
    stream: TcpStream,
    so_far: String,
}

impl Arriving {
    fn of(running: &Running, path: &str) -> Arriving {
        let mut stream = TcpStream::connect(("127.0.0.1", running.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (port, token) = (running.port, running.guard.token().as_str());
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        Arriving { stream, so_far: String::new() }
    }

    /// Reads until this has arrived.
    fn until(&mut self, wanted: &str) {
        let mut bytes = [0; 4096];
        while !self.so_far.contains(wanted) {
            let count = self.stream.read(&mut bytes).unwrap();
            assert_ne!(count, 0, "{wanted}: {}", self.so_far);
            self.so_far.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    }

    /// The whole answer, which ends as one of this kind does.
    fn whole(mut self) -> String {
        self.until("\r\n0\r\n\r\n");
        assert!(self.so_far.contains("</html>"), "{}", self.so_far);
        self.so_far
    }
}

#[test]
fn a_search_is_shown_before_its_answer_is_known() {
    let mut served = served();
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let site = site(&mut served);
    let places = site.places.clone();
    let now = (site.now)();
    site.open_archive = Box::new(move || {
        assert!(held.lock().unwrap().recv().is_err(), "it waits for the end of the channel");
        scrollback_index::Archive::new(places.clone(), now)
    });
    let running = Running::of(served);
    let mut page = Arriving::of(&running, "/search?q=reader");
    page.until("value=\"reader\"");
    assert!(page.so_far.starts_with("HTTP/1.1 200"), "{}", page.so_far);
    assert!(page.so_far.contains("<title>reader · Search"), "{}", page.so_far);
    assert!(!page.so_far.contains("</main>"), "{}", page.so_far);
    drop(release);
    let page = page.whole();
    assert!(page.contains("<mark>reader</mark>"), "{page}");
}

#[test]
fn the_files_of_a_session_follow_its_header() {
    let running = Running::of(served());
    let opened = running.served.site.opened.lock().unwrap();
    let mut page = Arriving::of(&running, "/s/sa/files");
    page.until("data-key=\"files\">Files");
    assert!(page.so_far.starts_with("HTTP/1.1 200"), "{}", page.so_far);
    assert!(page.so_far.contains("Mend the reader.</h1>"), "{}", page.so_far);
    assert!(!page.so_far.contains("</main>"), "{}", page.so_far);
    drop(opened);
    let page = page.whole();
    assert!(page.contains(">a.rs<"), "{page}");
    // Its tab has the number of files, which was not known before.
    let served = running.served.page("/s/sa/files").body;
    assert!(served.contains("data-key=\"files\">Files <span class=\"num\">1</span></a>"), "{served}");
}

#[test]
fn the_tree_of_a_large_session_follows_its_header() {
    let long = "The water rises. ".repeat(300_000);
    let running = Running::of(Served::of(&[("sa", talk("Tell me of tides.", &long)), ("sb", talk("small", "one"))]));
    let opened = running.served.site.opened.lock().unwrap();
    let mut page = Arriving::of(&running, "/s/sa/tree");
    page.until("data-key=\"replay\"");
    assert!(page.so_far.starts_with("HTTP/1.1 200"), "{}", page.so_far);
    assert!(!page.so_far.contains("</main>"), "{}", page.so_far);
    drop(opened);
    let page = page.whole();
    assert!(page.contains("class=\"tree-key\"") && page.contains(">head</span>"), "{page}");
    // The heads that are named decide how it went, whatever its size.
    for (path, status) in
        [("/s/sa/tree?a=nothing", 404), ("/s/sa/tree", 200), ("/s/sb/tree?a=nothing", 404), ("/s/sb/tree", 200)]
    {
        assert_eq!(running.served.page(path).status, status, "{path}");
    }
}

#[test]
fn what_fails_later_is_said_in_the_page() {
    let running = Running::of(served());
    let opened = running.served.site.opened.lock().unwrap();
    let mut page = Arriving::of(&running, "/s/sa/files");
    page.until("data-key=\"files\">Files");
    std::fs::remove_dir_all(running.served.folder.path().join(".sage")).unwrap();
    drop(opened);
    let page = page.whole();
    assert!(page.contains("<h2>This session is gone</h2>"), "{page}");

    let mut served = self::served();
    site(&mut served).open_archive = Box::new(|| panic!("a fault of ours"));
    let page = served.page("/search?q=reader").body;
    assert!(page.contains("value=\"reader\""), "{page}");
    assert!(page.contains("<h2>The rest of this page could not be made</h2>"), "{page}");
    assert!(page.ends_with("</html>"), "{page}");
}

#[test]
fn no_text_is_taken_for_the_place_of_the_rest() {
    let hole = "<!--hole-->";
    let served = Served::of(&[("sa", talk(hole, hole))]);
    for path in ["/search?q=hole", "/search?q=%22%3C%21--hole--%3E%22", "/s/sa/files", "/s/sa"] {
        let page = served.page(path).body;
        assert_eq!(page.matches("</main>").count(), 1, "{path}: {page}");
        assert!(page.contains("&lt;!--hole--&gt;") && !page.contains(hole), "{path}: {page}");
    }
}

#[test]
fn how_it_went_is_decided_before_the_first_piece() {
    let served = served();
    for (path, status) in [
        ("/s/sb/files", 404),
        ("/s/sa/files?file=x", 400),
        ("/s/sa/files?file=1", 200),
        ("/s/sa/files?file=0", 200),
        ("/search?q=role:nobody", 400),
        ("/search?q=reader&sort=none", 400),
        ("/search?q=reader", 200),
    ] {
        let answer = served.page(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        let request = Request::builder().method(Method::HEAD).uri(path);
        let token = format!("Bearer {}", served.guard.token().as_str());
        let request = request.header("host", format!("localhost:{PORT}")).header("authorization", token);
        let head = served.send(request.body(Body::empty()).unwrap());
        assert_eq!((head.status, head.body.as_str()), (answer.status, ""), "{path}");
        assert_eq!(head.headers.get("content-type"), answer.headers.get("content-type"), "{path}");
    }
    std::fs::remove_dir_all(served.folder.path().join(".sage")).unwrap();
    assert_eq!(served.page("/s/sa/files").status, 410);
}
