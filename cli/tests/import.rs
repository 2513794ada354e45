//! `import`: rows of a database become sessions that every command knows.
#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod support;

use support::TestEnv;

fn database(env: &TestEnv, rows: &str) {
    let table = "CREATE TABLE agents (id TEXT, prompt TEXT, status TEXT, model TEXT, result TEXT, created_at TEXT, completed_at TEXT);";
    let path = env.work().join("smithers.db");
    rusqlite::Connection::open(path).unwrap().execute_batch(&format!("{table}{rows}")).unwrap();
}

const ROWS: &str = "INSERT INTO agents VALUES \
    ('a1', 'Light the lamp.', 'completed', 'sonnet', 'It is lit.', '2026-11-01T10:00:00Z', '2026-11-01T10:01:00Z'), \
    ('a2', 'Put it out.', 'pending', 'sonnet', NULL, '2026-11-02T10:00:00Z', NULL), \
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL);";

#[test]
fn rows_are_imported_once_and_shown() {
    let env = TestEnv::new();
    database(&env, ROWS);
    let tried = env.run(&["import", "smithers.db", "--dry-run"]);
    assert_eq!(tried.all(), "2 sessions would be imported, 1 without messages\n[exit 0]\n");
    assert!(!env.home().join(".local").exists());
    let ran = env.run(&["import", "smithers.db", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let rows = ran.json();
    let is_dropped = |row: &serde_json::Value| row["losses"].to_string().contains("dropped");
    assert!(!rows.as_array().unwrap().iter().any(is_dropped), "{}", ran.out);
    let outcomes: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["imported", "imported", "empty"]);
    let shown = env.run(&["show", rows[0]["session"].as_str().unwrap(), "--json"]);
    let messages = shown.json()["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 2, "{}", shown.all());
    let again = env.run(&["import", "smithers.db"]);
    assert_eq!(again.all(), "0 sessions imported, 2 imported before, 1 without messages\n[exit 0]\n");
    let elsewhere = env.run(&["import", "smithers.db", "--store", "mine"]);
    assert_eq!((elsewhere.code, elsewhere.out.as_str()), (0, "2 sessions imported, 1 without messages\n"));
    assert!(env.work().join("mine/sessions").is_dir());
    let more = "UPDATE agents SET status = 'completed', result = 'Done.', completed_at = '2026-11-03T10:00:00Z' WHERE id = 'a2'; \
                UPDATE agents SET prompt = 'Another one.' WHERE id = 'a1';";
    rusqlite::Connection::open(env.work().join("smithers.db")).unwrap().execute_batch(more).unwrap();
    let changed = env.run(&["import", "smithers.db"]);
    assert_eq!(
        (changed.code, changed.out.as_str()),
        (1, "0 sessions imported, 1 changed since, 1 without messages, 1 whose place is taken\n"),
        "{}",
        changed.all()
    );
    assert!(changed.err.contains("warning: row a1: another session is in "), "{}", changed.err);
    assert!(changed.err.contains("warning: row a2 has changed since it was imported to "), "{}", changed.err);
}

#[test]
fn a_row_that_says_something_else_than_before_is_told() {
    for (change, is_told) in [
        ("UPDATE agents SET result = 'It is dark.' WHERE id = 'a1'", true),
        ("UPDATE agents SET status = 'failed' WHERE id = 'a1'", true),
        // Nobody wrote down when.
        ("UPDATE agents SET status = 'completed', result = 'Done.' WHERE id = 'a2'", true),
        ("UPDATE agents SET status = 'running' WHERE id = 'a2'", true),
        ("UPDATE agents SET id = id", false),
    ] {
        let env = TestEnv::new();
        database(&env, ROWS);
        assert_eq!(env.run(&["import", "smithers.db"]).code, 0);
        rusqlite::Connection::open(env.work().join("smithers.db")).unwrap().execute_batch(change).unwrap();
        let again = env.run(&["import", "smithers.db"]);
        let expected = if is_told { "1 imported before, 1 changed since" } else { "2 imported before" };
        assert_eq!(
            again.out,
            format!("0 sessions imported, {expected}, 1 without messages\n"),
            "{change}: {}",
            again.all()
        );
        assert_eq!(again.err.contains("has changed since it was imported to "), is_told, "{change}: {}", again.err);
    }
}

#[test]
fn what_cannot_be_imported_is_told() {
    let env = TestEnv::new();
    std::fs::write(env.work().join("text.db"), "{}\n").unwrap();
    let other = env.work().join("other.db");
    rusqlite::Connection::open(other).unwrap().execute_batch("CREATE TABLE notes (id);").unwrap();
    let lacking = env.work().join("lacking.db");
    rusqlite::Connection::open(lacking)
        .unwrap()
        .execute_batch("CREATE TABLE agents (id, prompt, result, status);")
        .unwrap();
    for (args, code, message) in [
        (&["import"][..], 2, "the following required arguments were not provided"),
        (&["import", "gone.db"], 2, "gone.db: No such file"),
        (&["import", "text.db"], 2, "text.db: not a SQLite database"),
        (&["import", "other.db"], 2, "other.db: not a database of a known agent"),
        (&["import", "lacking.db"], 2, "hint: it needs a table `agents` with the columns id, prompt, status and model"),
        (&["import", "."], 2, "not a regular file"),
        (&["import", "text.db", "--dialect", "codex"], 2, "only native sessions are imported"),
        (&["--demo", "import", "text.db"], 2, "the demo is read-only"),
    ] {
        let ran = env.run(args);
        assert_eq!(ran.code, code, "{}", ran.all());
        assert!(ran.err.contains(message) && ran.err.contains("\nhint: "), "{args:?}: {}", ran.err);
    }
    database(&env, "");
    let empty = env.run(&["import", "smithers.db"]);
    assert_eq!((empty.code, empty.err.as_str()), (1, "scrollback: no sessions in this database\n"));
}
