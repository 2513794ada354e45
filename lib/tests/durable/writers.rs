//! P6: sixteen processes record into one session, one of them without a lock: no line is torn, every branch is listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Output, Stdio};

use scrollback::model::IssueKind;
use scrollback::session::{ReadOptions, Session};
use scrollback::write::{NewSession, Policy};

use crate::child::writers_share;
use crate::support::native;
use crate::{PROJECT, flushing_store, process, said, store};

const WRITERS: u64 = 16;

#[test]
fn sixteen_writers_tear_no_line_and_every_branch_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let new = NewSession { id: Some("shared"), project: Path::new(PROJECT), with: None };
    let first = flushing_store(folder.path()).session(new, Policy::New).unwrap().user("Begin.").unwrap();
    let role = |number| if number == 0 { "foreigner" } else { "writer" };
    let start = |number| process(role(number), folder.path(), number).stdout(Stdio::piped()).spawn().unwrap();
    let children: Vec<_> = (0..WRITERS).map(start).collect();
    // Each is listened to by itself: one whose pipe is full would wait.
    let listen = |child: std::process::Child| std::thread::spawn(move || child.wait_with_output().unwrap());
    let outputs: Vec<Output> = children
        .into_iter()
        .map(listen)
        .collect::<Vec<_>>()
        .into_iter()
        .map(|ear| ear.join().unwrap())
        .collect();

    let session = store(folder.path()).load("shared").unwrap();
    let (count, _) = writers_share();
    assert_eq!(session.issues(), []);
    assert_eq!(session.records().len() as u64, 1 + WRITERS * count);
    let heads: BTreeMap<String, BTreeSet<String>> = session
        .heads()
        .map(|head| {
            let branch = session.branch(head.record);
            (head.record.id().into_owned(), branch.records.iter().map(|record| record.id().into_owned()).collect())
        })
        .collect();
    for (number, output) in outputs.iter().enumerate() {
        assert!(output.status.success(), "writer {number}: {}", String::from_utf8_lossy(&output.stdout));
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let acks: Vec<&str> = said(&told, "ack ").collect();
        assert_eq!(acks.len() as u64, count, "writer {number}");
        // A writer that ends before another one starts is an ancestor of that one's branch.
        let is_listed = heads.values().any(|branch| acks.iter().all(|id| branch.contains(*id)));
        assert!(is_listed, "writer {number}: no listed branch has all its records");
    }
    // Nobody makes a branch but the writers; the first record is one where everybody started after the foreign one.
    let others = heads.keys().filter(|id| Some(id.as_str()) != first.id().map(|id| id.as_str()));
    assert!(others.count() as u64 <= WRITERS);
}

/// A reader sees whole records only, at any moment.
#[test]
fn a_reader_beside_a_writer_sees_whole_records_only() {
    let folder = tempfile::tempdir().unwrap();
    let new = NewSession { id: Some("shared"), project: Path::new(PROJECT), with: None };
    flushing_store(folder.path()).session(new, Policy::New).unwrap().user("Begin.").unwrap();
    let mut child = process("writer", folder.path(), 2).stdout(Stdio::null()).spawn().unwrap();
    let log = folder.path().join("sessions/shared/messages.jsonl");
    let (mut looks, mut seen) = (0, 1);
    let mut look = || {
        let reading = ReadOptions::plain(jiff::Timestamp::now());
        let session = Session::from_bytes(native(), std::fs::read(&log).unwrap(), &reading);
        // The end of the file may be a record that is being written.
        let wrong = session.issues().iter().filter(|issue| issue.kind != IssueKind::Torn).count();
        let records = session.records().len();
        assert!(wrong == 0 && records >= seen, "{:?}", session.issues());
        (looks, seen) = (looks + 1, records);
    };
    while child.try_wait().unwrap().is_none() {
        look();
    }
    assert!(child.wait().unwrap().success());
    look();
    assert_eq!(seen as u64, 1 + writers_share().0);
    assert!(looks > 2, "the writer was done before anybody looked");
}
