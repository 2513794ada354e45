//! A site over sessions that a test wrote: asked as a service without a port, or as a server on one.
#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test may stop where it stands")]

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use scrollback::model::{Home, Host};
use scrollback::redact::Redactor;
use scrollback::view::find::Places;
use scrollback_index::Archive;
use scrollback_web::Site;
use scrollback_web::catalogue::{self, Catalogue, Selection};
use scrollback_web::server::{self, Guard, Listener, Stop};
use serde_json::{Value, json};
use tower::ServiceExt;

pub(crate) const PORT: u16 = 4747;

/// A site, its guard, and the folder that it is about.
pub(crate) struct Served {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) site: Arc<Site>,
    pub(crate) guard: Arc<Guard>,
}

/// A server on a port of its own, until it is dropped.
pub(crate) struct Running {
    pub(crate) served: Served,
    pub(crate) port: u16,
    pub(crate) guard: Arc<Guard>,
    stop: Stop,
}

impl Running {
    pub(crate) fn of(served: Served) -> Running {
        let listener = Listener::on([127, 0, 0, 1].into(), 0).unwrap();
        let port = listener.port();
        let guard = Arc::new(Guard::new(port, None).unwrap());
        let stop = Stop::new();
        let (router, stopped) = (server::router(served.site.clone(), guard.clone()), stop.clone());
        std::thread::spawn(move || listener.serve(router, &stopped).unwrap());
        Running { served, port, guard, stop }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.now();
    }
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Served {
    /// Serves native sessions, by id and lines.
    pub(crate) fn of(sessions: &[(&str, Vec<Value>)]) -> Served {
        let folder = tempfile::tempdir().unwrap();
        for (id, lines) in sessions {
            write_session(folder.path(), id, lines);
        }
        Served::over(folder)
    }

    /// Serves native sessions without their secrets.
    pub(crate) fn masked(sessions: &[(&str, Vec<Value>)]) -> Served {
        let folder = tempfile::tempdir().unwrap();
        for (id, lines) in sessions {
            write_session(folder.path(), id, lines);
        }
        Served::with_mask(folder, Some(Arc::new(Redactor::built_in())))
    }

    /// Serves the sessions of a home.
    pub(crate) fn over(folder: tempfile::TempDir) -> Served {
        Served::with_mask(folder, None)
    }

    fn with_mask(folder: tempfile::TempDir, mask: Option<Arc<Redactor>>) -> Served {
        let home = Home { dir: folder.path().to_owned(), cwd: folder.path().to_owned(), vars: Default::default() };
        let now: Timestamp = "2026-11-14T10:06:05Z".parse().unwrap();
        let places = Places { home, store: None, dialect: None, mask };
        let archived = places.clone();
        let site = Arc::new(Site {
            open_archive: Box::new(move || Archive::new(archived.clone(), now)),
            places,
            selection: Selection { project: None, since: None, until: None, hidden: Vec::new() },
            zone: TimeZone::UTC,
            now: Box::new(move || now),
            data: None,
            host: Host::at(folder.path().to_owned(), "test"),
            price: Box::new(|_, _| None),
            catalogue: Catalogue::default(),
            opened: Mutex::default(),
        });
        catalogue::list_and_count(&site);
        let guard = Arc::new(Guard::new(PORT, Some("pages.example:8443")).unwrap());
        Served { folder, site, guard }
    }

    /// Sends a request as it is.
    pub(crate) fn send(&self, request: Request<Body>) -> Answer {
        let router = server::router(self.site.clone(), self.guard.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let response = router.oneshot(request).await.unwrap();
            let (parts, body) = response.into_parts();
            let bytes = to_bytes(body, usize::MAX).await.unwrap();
            let body = String::from_utf8_lossy(&bytes).into_owned();
            Answer { status: parts.status, headers: parts.headers, body }
        })
    }

    /// Asks for a page as somebody who may see it.
    pub(crate) fn page(&self, path: &str) -> Answer {
        let token = format!("Bearer {}", self.guard.token().as_str());
        let request = Request::get(path).header("host", format!("localhost:{PORT}")).header("authorization", token);
        self.send(request.body(Body::empty()).unwrap())
    }
}

pub(crate) fn write_session(home: &Path, id: &str, lines: &[Value]) {
    let folder = home.join(".sage/sessions").join(id);
    fs::create_dir_all(&folder).unwrap();
    let own = |line: &Value| {
        let mut line = line.clone();
        line["sessionId"] = id.into();
        format!("{line}\n")
    };
    let text: String = lines.iter().map(own).collect();
    fs::write(folder.join("messages.jsonl"), text).unwrap();
}

/// A record of a native session.
pub(crate) fn record(kind: &str, id: &str, parent: Option<&str>, message: Value) -> Value {
    json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "timestamp": "2026-11-01T10:00:00Z",
           "format": 2, "context": {"cwd": "/w"}, "message": message})
}

/// A session of one prompt and one answer.
pub(crate) fn talk(prompt: &str, answer: &str) -> Vec<Value> {
    vec![
        record("user", "u1", None, json!({"role": "user", "content": prompt})),
        record("assistant", "a1", Some("u1"), json!({"role": "assistant", "content": answer})),
    ]
}
