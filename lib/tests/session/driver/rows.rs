//! Rows of a database, several sessions in it.

use std::fs;

use scrollback::dialect::{Dialect, Format, Rows};
use scrollback::model::Error;
use scrollback::session::{Session, Source};

use crate::driver::log::link_message;
use crate::driver::shown;
use crate::support::reading;

static MESSAGES: Rows = Rows {
    table: "message",
    columns: &["session", "data"],
    sessions: "select distinct session, session from message order by session",
    rows: "select rowid, data from message where session = ?1 order by rowid",
    row: "select data from message where rowid = ?1",
    lists: &[],
    log: None,
    records: &[],
};
dialect!(Table, "*.db", Format::Rows(&MESSAGES), LastWins, None, link_message);

#[test]
fn rows_of_a_database_are_records() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch("create table message (session text, data text)").unwrap();
    for (session, data) in [
        ("one", r#"{"id":"q","kind":"user","text":"Hello"}"#),
        ("two", r#"{"id":"x","kind":"user","text":"Elsewhere"}"#),
        ("one", r#"{"id":"a","kind":"assistant","text":"Hi"}"#),
        ("one", "nonsense"),
    ] {
        database.execute("insert into message values (?1, ?2)", [session, data]).unwrap();
    }
    let sources = Source::walk(&Table, &Table.layouts_in(dir.path())[0]);
    let sessions: Vec<Session> =
        sources.iter().map(|source| Session::open(source.as_ref().unwrap(), &reading()).unwrap()).collect();
    assert_eq!(sessions.iter().map(|session| session.id().0).collect::<Vec<_>>(), ["one", "two"]);
    insta::assert_snapshot!(shown(&sessions[0]), @"
    head a; heads a main; branch q a; gaps none; state clean; messages 2; issues not-json 3.
    q: Hello
    a: | Hi
    ");
    insta::assert_snapshot!(shown(&sessions[1]), @"
    head x; heads x main; branch x; gaps none; state interrupted-prompt; messages 1; issues none.
    x: Elsewhere
    ");
    assert_eq!(sessions[0].row().unwrap().message_count, Some(2));
    let several = Session::open(&Source::file(&Table, &path), &reading()).err().unwrap();
    assert!(matches!(several, Error::SeveralSessions { count: 2, .. }), "{several}");
    assert_eq!(Source::in_file(&Table, &path).unwrap().len(), 2);
}

#[test]
fn a_database_that_cannot_be_read_is_an_error_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions.db");
    let told = || {
        let mut found = Source::walk(&Table, &Table.layouts_in(dir.path())[0]);
        assert_eq!(found.len(), 1);
        let error = found.remove(0).unwrap_err();
        assert!(matches!(&error, Error::Database { path: of, .. } | Error::NoSessions(of) if *of == path), "{error}");
        error.to_string().replace(&*dir.path().to_string_lossy(), "$DIR")
    };
    fs::write(&path, "no database at all, and long enough to be sure of it").unwrap();
    insta::assert_snapshot!(told(), @"
    $DIR/sessions.db: file is not a database
    ");
    fs::remove_file(&path).unwrap();
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch("create table other (x)").unwrap();
    insta::assert_snapshot!(told(), @"
    $DIR/sessions.db: not a database of a known agent
    ");
    database.execute_batch("create table message (session text, data text); begin exclusive").unwrap();
    insta::assert_snapshot!(told(), @"
    $DIR/sessions.db: database is locked
    ");
}

#[test]
fn two_threads_read_the_records_of_one_session() {
    fn is_shared_between_threads<T: Send + Sync>(session: T) -> T {
        session
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch("create table message (session text, data text)").unwrap();
    for at in 0..50 {
        let data = format!(r#"{{"id":"r{at}","kind":"user","text":"Line {at}"}}"#);
        database.execute("insert into message values ('one', ?1)", [data]).unwrap();
    }
    let session = Session::open(&Source::in_file(&Table, &path).unwrap()[0], &reading()).unwrap();
    let session = is_shared_between_threads(session);
    let bodies = || session.records().map(|record| record.body().unwrap()).collect::<Vec<_>>();
    let (one, other) = std::thread::scope(|scope| {
        let (one, other) = (scope.spawn(bodies), scope.spawn(bodies));
        (one.join().unwrap(), other.join().unwrap())
    });
    assert_eq!(one.len(), 50);
    assert_eq!(one, other);
}
