//! The native format holds whatever any agent's record says.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use scrollback::record::{Body, RecordId, SessionId};
use scrollback::session::Session;
use support::drafted::draft;
use support::place::writing;
use support::{logs_of_all, native, read, reading};

/// What is written for one record, read again; nothing where the format says that it cannot hold all of it.
fn round(body: &Body) -> Option<(String, Body)> {
    let (session, id) = (SessionId::from("s"), RecordId::from("r"));
    let written = (writing(native()).lines)(&draft(&session, &id, body, &|| "x".to_owned()));
    if !written.losses.is_empty() {
        return None;
    }
    let text: String = written.lines.iter().map(|line| format!("{}\n", line.value)).collect();
    let read = read(text.clone());
    let issues: Vec<_> = read.issues().iter().filter(|issue| !issue.detail.contains("no such call")).collect();
    assert!(read.records().len() == 1, "{issues:?} {text}");
    let body = read.records().next().unwrap().body().unwrap();
    Some((text, body))
}

/// Which piece of a stream a record was is no longer told once it is whole.
fn whole(mut body: Body) -> Body {
    body.said_mut().into_iter().for_each(|said| said.fragment = None);
    body
}

#[test]
fn whatever_a_record_says_is_read_back_as_it_was() {
    let (mut count, mut lost) = (0, 0);
    for (dialect, log) in logs_of_all() {
        let session = Session::from_bytes(dialect, std::fs::read(&log).unwrap(), &reading());
        for record in session.records() {
            let body = whole(record.body().unwrap());
            if matches!(body, Body::Other(_) | Body::Header(_)) {
                continue;
            }
            let Some((text, again)) = round(&body) else {
                lost += 1;
                continue;
            };
            assert_eq!(whole(again), body, "{}: {}\n{text}", log.display(), record.id());
            count += 1;
        }
    }
    assert!(count > 1000, "{count}");
    assert_eq!(lost, 1, "only a message that uses one id for many calls");
}
