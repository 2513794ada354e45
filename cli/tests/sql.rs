//! `sql` as a person types it: the documented views, and nothing but questions.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use serde_json::{Value, json};
use support::TestEnv;

const PAGE: &str = include_str!("../../docs/sql.md");

fn ask(env: &TestEnv, question: &str) -> Value {
    env.run(&["--demo", "sql", question, "--json"]).json()
}

#[test]
fn the_views_have_the_columns_of_the_page() {
    let env = TestEnv::new();
    for view in ["sessions", "messages", "parts", "usage", "tool_calls"] {
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{view}` |"))).unwrap();
        let columns: Vec<&str> = row.split('`').nth(3).unwrap().split(", ").collect();
        let first = &ask(&env, &format!("select * from {view} limit 1"))[0];
        assert_eq!(first.as_object().unwrap().keys().collect::<Vec<_>>(), columns, "{view}");
    }
}

#[test]
fn every_question_of_the_page_has_an_answer() {
    let env = TestEnv::new();
    let questions = PAGE.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    for question in questions.lines() {
        let rows = ask(&env, question);
        assert!(!rows.as_array().unwrap().is_empty(), "{question}");
    }
}

#[test]
fn views_agree_with_the_other_commands() {
    let env = TestEnv::new();
    let sessions = env.run(&["--demo", "list", "--sidechains", "--json"]).json();
    let count = ask(&env, "select count(*) as n from sessions");
    assert_eq!(count, json!([{"n": sessions.as_array().unwrap().len()}]));
    let total = env.run(&["--demo", "stats", "--json"]).json()["total"].clone();
    let sums =
        ask(&env, "select count(*) as requests, sum(input) as input, sum(output) as output from usage where counted");
    let expected =
        json!([{"requests": total["requests"], "input": total["usage"]["input"], "output": total["usage"]["output"]}]);
    assert_eq!(sums, expected);
    let joined = ask(&env, "select count(*) as n from usage u join messages m on m.id = u.message");
    assert!(joined[0]["n"].as_i64().unwrap() > 80, "{joined}");
    let orphans = "select count(*) as n from tool_calls where message not in (select id from messages)";
    assert_eq!(ask(&env, orphans), json!([{"n": 0}]));
}

#[test]
fn nothing_but_one_question_is_answered() {
    let env = TestEnv::new();
    for (sql, message) in [
        ("insert into sessions(id) values ('x')", "only questions are answered"),
        ("delete from usage", "only questions are answered"),
        ("create table t(x)", "only questions are answered"),
        ("reindex", "only questions are answered"),
        ("attach 'x.db' as x", "only questions are answered"),
        ("pragma journal_mode = delete", "only questions are answered"),
        ("vacuum into 'x.db'", "only questions are answered"),
        ("select load_extension('x')", "only questions are answered"),
        ("begin", "only questions are answered"),
        ("select 1; select 2", "ask one question"),
        ("select 1; drop table sessions", "only questions are answered"),
        ("", "ask one question"),
        ("selec 1", "syntax error"),
        ("select nobody from sessions", "no such column"),
        ("select zeroblob(2000000000)", "too big"),
    ] {
        let ran = env.run(&["--demo", "sql", sql]);
        assert!(ran.code == 2 && ran.err.contains(message), "{sql}: {}", ran.all());
    }
    assert!(!env.work().join("x.db").exists());
}

#[test]
fn a_question_has_a_size_and_a_time() {
    let env = TestEnv::new();
    let numbers = "with recursive n(x) as (select 1 union all select x + 1 from n";
    let many = env.run(&["--demo", "sql", &format!("{numbers} limit 100001) select x from n"), "--json"]);
    assert_eq!((many.code, many.json().as_array().unwrap().len()), (0, 100_000));
    assert!(many.err.contains("there are more than 100000 rows"), "{}", many.err);
    let endless = env.run(&["--demo", "sql", &format!("{numbers}) select count(*) from n")]);
    assert!(endless.code == 2 && endless.err.contains("more than 10 seconds"), "{}", endless.all());
    let large = env.run(&["--demo", "sql", &format!("{numbers} limit 60) select zeroblob(6000000) from n")]);
    assert!(large.code == 2 && large.err.contains("the answer has more than 64 MB"), "{}", large.all());
}

#[test]
fn a_table_and_a_csv_have_the_same_cells() {
    let env = TestEnv::new();
    let sql = "select 'a' as x, null as y, 2 as x, '=1' as z";
    assert_eq!(env.run(&["--demo", "sql", sql]).out, "x  y  x  z\na  ·  2  =1\n");
    assert_eq!(env.run(&["--demo", "sql", sql, "--csv"]).out, "x,y,x,z\r\na,,2,'=1\r\n");
    assert_eq!(ask(&env, sql), json!([{"x": "a", "y": null, "x_2": 2, "z": "=1"}]));
}

#[test]
fn a_text_that_is_not_utf8_is_shown_all_the_same() {
    let env = TestEnv::new();
    assert_eq!(
        ask(&env, "select cast(x'61ff' as text) as broken, 1 as one"),
        json!([{"broken": "a\u{fffd}", "one": 1}])
    );
}
