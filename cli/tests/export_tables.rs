//! `export --to sqlite`: the tables have every session, and give back the messages that they were made of.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;

use rusqlite::Connection;
use serde_json::Value;
use support::TestEnv;

/// Every row of the three tables.
fn rows(path: &std::path::Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut rows = Vec::new();
    for table in ["agents", "messages", "message_parts"] {
        let mut statement = connection.prepare(&format!("select * from {table} order by 1")).unwrap();
        let columns = statement.column_count();
        let mut found = statement.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let cells: Vec<_> = (0..columns).map(|at| format!("{:?}", row.get_ref(at).unwrap())).collect();
            rows.push(format!("{table} {}", cells.join(" ")));
        }
    }
    rows
}

fn number(path: &std::path::Path, sql: &str) -> i64 {
    Connection::open(path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn the_tables_give_back_every_message_of_the_demo() {
    let env = TestEnv::new();
    let file = env.work().join("sessions.db");
    let name = file.to_str().unwrap();
    let exported = env.run(&["--demo", "export", "--to", "sqlite", "-o", name, "--json"]);
    assert_eq!(exported.code, 0, "{}", exported.all());
    let sessions = env.run(&["--demo", "list", "--sidechains", "--json"]).json();
    assert_eq!(exported.json()["sessions"], sessions.as_array().unwrap().len());
    // The same without the lists of parts.
    let parts_apart = env.work().join("parts.db");
    fs::copy(&file, &parts_apart).unwrap();
    Connection::open(&parts_apart)
        .unwrap()
        .execute_batch("alter table messages drop column parts")
        .unwrap();
    for session in sessions.as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        let messages = |ran: support::Ran| {
            let mut messages = ran.json()["messages"].clone();
            for message in messages.as_array_mut().unwrap() {
                // The records of the source: there they are lines, here rows.
                message["metadata"].as_object_mut().map(|metadata| metadata.remove("records"));
            }
            messages
        };
        let original =
            messages(env.run(&["--demo", "show", &format!("{}:{id}", session["dialect"].as_str().unwrap()), "--json"]));
        for tables in [name, "parts.db"] {
            let back = messages(env.run(&["show", &format!("{tables}#{id}"), "--json"]));
            assert_eq!(back, original, "{tables} {id}");
        }
    }
    // Again: nothing changes.
    let before = rows(&file);
    let again = env.run(&["--demo", "export", "--to", "sqlite", "-o", name, "--json"]).json();
    assert_eq!((&again["added"], &again["changed"], &again["removed"]), (&0.into(), &0.into(), &0.into()));
    assert_eq!(rows(&file), before);
    assert!(
        number(
            &file,
            "select count(*) from message_parts where type = 'tool-invocation' and tool_state = 'output-available'"
        ) > 10
    );
    assert!(number(&file, "select count(*) from messages where on_branch = 0") > 0, "other branches are there, too");
    assert_eq!(number(&file, "select count(*) from pragma_foreign_key_check"), 0);
}

#[test]
fn a_text_that_looks_like_a_part_stays_a_text() {
    let env = TestEnv::new();
    let nested = format!("{{\"type\":\"text\",\"x\":{}{}}}", "[".repeat(200), "]".repeat(200));
    let texts = ["{\"type\":\"text\",\"text\":\"another\"}", "{\"type\":\"text\",\"n\":1e999}", &nested, " {", "plain"];
    let line = |(at, text): (usize, &&str)| {
        let parent = at.checked_sub(1).map(|before| format!("u{before}"));
        let message = serde_json::json!({"content": text});
        format!(
            "{}\n",
            serde_json::json!({"type": "user", "uuid": format!("u{at}"), "parentUuid": parent, "message": message})
        )
    };
    let path = env.session("s1", &texts.iter().enumerate().map(line).collect::<String>());
    assert_eq!(env.run(&["export", "s1", "--to", "sqlite", "-o", "t.db"]).code, 0);
    let connection = Connection::open(env.work().join("t.db")).unwrap();
    connection
        .execute_batch("alter table messages drop column parts; update agents set log_path = null")
        .unwrap();
    drop(connection);
    fs::remove_file(path).unwrap();
    let shown = env.run(&["show", "t.db#s1", "--json"]).json();
    let back: Vec<&str> = shown["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["parts"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(back, texts);
}

#[test]
fn a_grown_log_adds_rows() {
    let env = TestEnv::new();
    let line = |id: &str, parent: &str, role: &str, text: &str| {
        format!(
            "{{\"type\":\"{role}\",\"uuid\":\"{id}\",\"parentUuid\":{parent},\"message\":{{\"content\":\"{text}\"}}}}\n"
        )
    };
    let long = "é".repeat(300);
    let log = line("u1", "null", "user", &long) + &line("a1", "\"u1\"", "assistant", "One.");
    let path = env.session("s1", &log);
    let file = env.work().join("t.db");
    let export = || env.run(&["export", "s1", "--to", "sqlite", "-o", "t.db", "--json"]).json();
    assert_eq!(export()["added"], 2);
    assert_eq!(number(&file, "select length(text_preview) from messages where sequence = 0"), 200);
    assert_eq!(number(&file, "pragma user_version"), 1);
    fs::write(&path, log + &line("a2", "\"a1\"", "assistant", "Two.") + &line("u2", "\"a2\"", "user", "More."))
        .unwrap();
    let grown = export();
    assert_eq!((&grown["added"], &grown["changed"], &grown["removed"]), (&1.into(), &1.into(), &0.into()));
    assert_eq!(number(&file, "select count(*) from messages where id = 's1#u2' and parent_id = 's1#a1'"), 1);
}

#[test]
fn another_programs_database_is_left_alone() {
    let env = TestEnv::new();
    env.session("s1", "{\"type\":\"user\",\"uuid\":\"u1\",\"parentUuid\":null,\"message\":{\"content\":\"Hi\"}}\n");
    let file = env.work().join("other.db");
    Connection::open(&file).unwrap().execute_batch("create table messages(x)").unwrap();
    let before = fs::read(&file).unwrap();
    let refused = env.run(&["export", "s1", "--to", "sqlite", "-o", "other.db"]);
    assert_eq!(refused.code, 2, "{}", refused.all());
    assert_eq!(fs::read(&file).unwrap(), before);
    let note = env.work().join("note.db");
    fs::write(&note, "\n").unwrap();
    assert_eq!(env.run(&["export", "s1", "--to", "sqlite", "-o", "note.db"]).code, 2);
    assert_eq!(fs::read(&note).unwrap(), b"\n", "SQLite takes it for a new database");
    assert_eq!(env.run(&["export", "s1", "--to", "sqlite"]).code, 2);
    assert_eq!(env.run(&["export", "--to", "sqlite", "-o", "a.db"]).code, 2, "no session");
}

#[test]
fn messages_of_both_options_are_read_from_smithers_own_tables() {
    let env = TestEnv::new();
    let agents = "create table agents(id text primary key, execution_id text, model text, prompt text, status text, result text);
        insert into agents values ('a1', 'e', 'm', 'Hi', 'completed', 'x'), ('a2', 'e', 'm', 'Plain', 'completed', 'Only text');";
    let parts_in_messages = "create table messages(id text primary key, agent_id text, execution_id text, role text, sequence integer, parts text, metadata text);
        insert into messages values ('m2', 'a1', 'e', 'assistant', 2, '[{\"type\":\"text\",\"text\":\"Hello\"}]', '{\"k\":null}'),
            ('m1', 'a1', 'e', 'user', 1, 'no list', null);";
    let parts_apart = "create table messages(id text primary key, agent_id text, execution_id text, role text, sequence integer, metadata text);
        create table message_parts(id text, message_id text, sequence integer, type text, content text);
        insert into messages values ('m1', 'a1', 'e', 'user', 1, null), ('m2', 'a1', 'e', 'assistant', 2, '{\"k\":null}');
        insert into message_parts values ('p2', 'm2', 1, 'text', 'Hello'), ('p0', 'm1', 0, 'text', 'no list'), ('p1', 'm2', 0, 'step-start', null),
            ('p3', 'm2', 2, 'tool-invocation', '{\"type\":\"dynamic-tool\",\"toolName\":\"x\",\"toolCallId\":\"c\",\"state\":\"output-available\",\"input\":{},\"output\":1}');";
    for (file, tables, parts) in [("b.db", parts_in_messages, 1), ("c.db", parts_apart, 3)] {
        Connection::open(env.work().join(file))
            .unwrap()
            .execute_batch(&format!("{agents}{tables}"))
            .unwrap();
        let messages = env.run(&["show", &format!("{file}#a1"), "--json"]).json()["messages"].clone();
        let ids: Vec<&Value> = messages.as_array().unwrap().iter().map(|message| &message["id"]).collect();
        assert_eq!(ids, ["m1", "m2"], "{file} {messages:#}");
        assert_eq!(messages[0]["parts"][0]["text"], "no list");
        assert_eq!(messages[1]["parts"].as_array().unwrap().len(), parts, "{messages:#}");
        let plain = env.run(&["show", &format!("{file}#a2"), "--json"]).json()["messages"].clone();
        assert_eq!(plain[1]["parts"][0]["text"], "Only text", "a run without messages is its prompt and result");
    }
}

#[test]
fn a_masked_row_leaves_nothing_of_the_secret_in_the_file() {
    let env = TestEnv::new();
    let secret = ["ghp_", "a8Kd02LmNq7RtVwXz3Bc5Df9Hj1Ks4Mp6Ty"].concat();
    let lines: String = (0..50)
        .map(|at| {
            let parent = if at == 0 { "null".to_owned() } else { format!("\"u{}\"", at - 1) };
            let text = format!("my token is {secret}. {}", "tide ".repeat(at * 40));
            format!("{{\"type\":\"user\",\"uuid\":\"u{at}\",\"parentUuid\":{parent},\"message\":{{\"content\":\"{text}\"}}}}\n")
        })
        .collect();
    env.session("s1", &lines);
    let file = env.work().join("r.db");
    let holds = || String::from_utf8_lossy(&fs::read(&file).unwrap()).contains(&secret[..12]);
    let exact = env.run(&["export", "s1", "--to", "sqlite", "-o", "r.db", "--no-redact"]);
    assert!(exact.code == 0 && holds(), "{}", exact.all());
    let masked = env.run(&["export", "s1", "--to", "sqlite", "-o", "r.db"]);
    assert!(masked.code == 0 && !holds(), "{}", masked.all());
    let page = env.run(&["export", "s1", "--to", "md"]);
    // Each prompt, and the title.
    assert!(page.err.contains("secrets masked in 51 places; --no-redact writes them."), "{}", page.all());
}

#[test]
fn several_exports_into_one_new_file_wait_for_each_other() {
    let env = TestEnv::new();
    let started: Vec<_> = (0..4)
        .map(|_| env.command(&["--demo", "export", "--to", "sqlite", "-o", "together.db"]).spawn().unwrap())
        .collect();
    for child in started {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let sessions = env.run(&["--demo", "list", "--sidechains", "--json"]).json().as_array().unwrap().len();
    // The demo has a folder of its own to work in.
    let file = [env.work(), env.home()]
        .map(|folder| folder.join("together.db"))
        .into_iter()
        .find(|path| path.exists());
    assert_eq!(number(&file.unwrap(), "select count(*) from agents"), sessions as i64);
}

#[test]
fn nothing_to_store_makes_no_file_and_no_folder() {
    let env = TestEnv::new();
    let unknown = env.run(&["export", "nosuch", "--to", "sqlite", "-o", "q.db"]);
    assert!(unknown.code != 0 && !env.work().join("q.db").exists(), "{}", unknown.all());
    let missing = env.run(&["--demo", "export", "--to", "sqlite", "-o", "gone/x.db"]);
    assert_eq!(missing.code, 2, "{}", missing.all());
    assert!(missing.err.contains("gone"), "{}", missing.all());
    assert!(!env.work().join("gone").exists());
}
