//! The examples on docs/model-views.md are what the views say of the session on that page.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::read;
use scrollback::view::history::{History, View};

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/model-views.md")
}

/// The block that is marked with this word.
fn block<'p>(page: &'p str, mark: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("\n```{mark}\n")).unwrap_or_else(|| panic!("no block {mark}"));
    rest.split_once("```\n").unwrap().0
}

/// `SCROLLBACK_BLESS=1` writes what the views say into the page instead.
#[test]
fn each_view_says_what_the_page_shows() {
    let mut text = fs::read_to_string(page()).unwrap();
    let session = read(block(&text, "session"));
    assert!(!session.has_errors(), "{:?}", session.issues());
    let history = History::of(&session, session.head().unwrap()).unwrap();
    for view in View::ALL {
        let (messages, _) = view.messages(&history).unwrap();
        let line = |message: &serde_json::Value| message.as_str().map_or_else(|| message.to_string(), str::to_owned);
        let said: String = messages.iter().map(|message| line(message) + "\n").collect();
        let mark = format!("\n```{}\n", view.name());
        let shown = block(&text, view.name()).to_owned();
        if std::env::var_os("SCROLLBACK_BLESS").is_some() {
            text = text.replace(&format!("{mark}{shown}"), &format!("{mark}{said}"));
        } else {
            assert_eq!(shown, said, "{}", view.name());
        }
    }
    if std::env::var_os("SCROLLBACK_BLESS").is_some() {
        fs::write(page(), text).unwrap();
    }
}
