//! One JSON document, an object or an array.

use std::fs;

use scrollback::dialect::{Dialect, Format};
use scrollback::session::{Session, Source};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::driver::log::link_message;
use crate::driver::{Emit, Fields, read, shown};
use crate::support::reading;

dialect!(Document, "*.json", Format::Document, Distinct, None, link_document);

fn link_document<'a>(text: &'a str, emit: Emit<'_, 'a>) -> Result<(), serde_json::Error> {
    #[derive(Deserialize)]
    struct Outer<'a> {
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
    }
    // A record alone: the driver asks this of the pieces of a torn document.
    if let Ok(Fields { id: Some(_), .. }) = serde_json::from_str::<Fields<'a>>(text) {
        return link_message(text, emit);
    }
    let messages: Vec<&'a RawValue> = if text.starts_with('[') {
        serde_json::from_str(text)?
    } else {
        serde_json::from_str::<Outer<'a>>(text)?.messages
    };
    messages.into_iter().try_for_each(|message| link_message(message.get(), emit))
}

const DOCUMENT: &str = r#"{
  "version": 1,
  "messages": [
    {
      "id": "q",
      "kind": "user",
      "text": "Hello {"
    },
    {
      "id": "a",
      "kind": "assistant",
      "text": "Hi"
    }
  ]
}
"#;

#[test]
fn a_document_is_read_as_its_records() {
    insta::assert_snapshot!(shown(&read(&Document, DOCUMENT)), @"
    head a; heads a main; branch q a; gaps none; state clean; messages 2; issues none.
    q: Hello {
    a: | Hi
    ");
    insta::assert_snapshot!(shown(&read(&Document, r#"[{"id":"q","kind":"user","text":"Hello"},{"id":"a","kind":"assistant","text":"Hi"}]"#)), @"
    head a; heads a main; branch q a; gaps none; state clean; messages 2; issues none.
    q: Hello
    a: | Hi
    ");
    insta::assert_snapshot!(shown(&read(&Document, "[]")), @"
    head at-0; heads at-0 main; branch at-0; gaps none; state clean; messages 0; issues none.
    ");
    insta::assert_snapshot!(shown(&read(&Document, "7")), @"
    head none; heads none; branch none; gaps none; state clean; messages 0; issues not-an-object 0.
    ");
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("one.json"), DOCUMENT).unwrap();
    let sources = Source::walk(&Document, &Document.layouts_in(dir.path())[0]);
    let session = Session::open(sources[0].as_ref().unwrap(), &reading()).unwrap();
    assert_eq!(shown(&session), shown(&read(&Document, DOCUMENT)));
    assert_eq!(session.id().as_str(), "one");
    let place = session.find("a").unwrap().place();
    assert!(DOCUMENT[place.offset as usize..].starts_with("{\n      \"id\": \"a\""));
}

#[test]
fn a_torn_document_keeps_the_records_before_the_tear() {
    let tear = DOCUMENT.find("Hi").unwrap();
    insta::assert_snapshot!(shown(&read(&Document, &DOCUMENT[..tear])), @"
    head q; heads q main; branch q; gaps none; state interrupted-prompt; messages 1; issues torn 0, torn 0.
    q: Hello {
    ");
    for cut in 0..DOCUMENT.len() {
        let torn = read(&Document, &DOCUMENT[..cut]);
        let whole = |id: &str| torn.find(id).is_ok();
        assert_eq!(whole("q"), cut > DOCUMENT.find("},").unwrap(), "cut at {cut}");
        assert_eq!(whole("a"), cut > DOCUMENT.find("}\n  ]").unwrap(), "cut at {cut}");
    }
}
