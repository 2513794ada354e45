//! How queries are parsed, and what they match.

use proptest::prelude::*;

use super::*;
use crate::words::tests::any_text;
use crate::words::{WordKind, each_word};

const NOW: &str = "2026-11-15T12:00:00Z";

fn parse(text: &str) -> Result<Query, QueryError> {
    Query::parse(text, NOW.parse().unwrap(), &TimeZone::UTC)
}

/// A tree in one line: `(a & b)`, `(a | b)`, `!a`, phrases as `a+b`.
fn tree(expr: &Expr) -> String {
    let join = |sides: &[Expr], sign: &str| format!("({})", sides.iter().map(tree).collect::<Vec<_>>().join(sign));
    match expr {
        Expr::Term(term) => format!("{}{}", term.words.join("+"), if term.is_prefix { "*" } else { "" }),
        Expr::Regex(regex) => format!("/{regex}/"),
        Expr::Filter(filter) => format!("{filter:?}"),
        Expr::And(sides) => join(sides, " & "),
        Expr::Or(sides) => join(sides, " | "),
        Expr::Not(excluded) => format!("!{}", tree(excluded)),
    }
}

#[test]
fn queries_are_parsed_into_a_tree() {
    for (text, expected) in [
        ("water", "water"),
        ("  High\tWATER ", "(high & water)"),
        ("high AND water", "(high & water)"),
        ("a b OR c d", "((a & b) | (c & d))"),
        ("(a OR b) c", "((a | b) & c)"),
        ("((a))", "a"),
        ("and or not", "(and & or & not)"),
        // Phrases and what becomes one.
        (r#""high water""#, "high+water"),
        (r#"a"b c"d"#, "(a & b+c & d)"),
        ("snake_case src/main.rs", "(snake+case & src+main+rs)"),
        ("東京 e\u{301}lan", "(東+京 & elan)"),
        ("GitHub", "(git+hub | github)"),
        (r#""GitHub Actions""#, "(git+hub+actions | github+actions)"),
        ("parsehttp", "parsehttp"),
        // Beginnings.
        ("wat*", "wat*"),
        (r#""high wat*" "low tid"*"#, "(high+wat* & low+tid*)"),
        ("parseHt*", "(parse+ht* | parseht*)"),
        ("src/* *.rs", "(src & rs)"),
        // Exclusion.
        ("-foo", "!foo"),
        (r#"a -"b c" -(d OR e) -role:user -/x/"#, r#"(a & !b+c & !(d | e) & !Role("user") & !/x/)"#),
        ("well-known --watch -->a", "(well+known & watch & a)"),
        // Regular expressions and paths.
        (r"/a\/b c/ d", r"(/a\/b c/ & d)"),
        (r"(/a(b|c)/)", r"/a(b|c)/"),
        (r"/a\\/", r"/a\\/"),
        ("/usr/bin/x /usr/bin/ /etc", "(usr+bin+x & usr+bin & etc)"),
        // Parentheses in words.
        ("(main() OR f(g(x)))", "(main | f+g+x)"),
        // Filters.
        ("agent:claude", r#"Agent("claude-code")"#),
        ("agent:codex in:title is:dead", r#"(Agent("codex") & InTitle & Is(Dead))"#),
        (r#"project:"My Äpp" file:É.rs"#, r#"(Project("my app") & File("e.rs"))"#),
        ("tool:Read* model:Opus branch:feat/x", r#"(Tool("read*") & Model("opus") & Branch("feat/x"))"#),
        ("since:3d", "Since(2026-11-12T12:00:00Z)"),
        ("until:2026-11-01T10:00:00Z", "Until(2026-11-01T10:00:00Z)"),
        ("(role:user)", r#"Role("user")"#),
        // Colons in text.
        (r"std::fs http://x.org 12:30", "(std+fs & http+x+org & 12+30)"),
        (r"C:\x C:/x foo: main.rs:7 é:x", r"(c+x & c+x & foo & main+rs+7 & e+x)"),
        ("file:/etc file:///etc role::user", r#"(File("/etc") & file+etc & role+user)"#),
        (r#""foo:bar" "role:user""#, "(foo+bar & role+user)"),
    ] {
        assert_eq!(parse(text).map(|query| tree(query.expr())).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn an_invalid_query_is_an_error_with_its_place() {
    let deep = "(".repeat(65);
    let long = "é".repeat(2049);
    for (text, wrong, message, hint) in [
        ("", "", "the query is empty", "type words"),
        (" \t", " \t", "the query is empty", "type words"),
        ("->", "->", "no letter or digit to search for", "/regex/"),
        ("a … b", "…", "no letter or digit to search for", "/regex/"),
        ("*", "*", "no letter or digit to search for", "/regex/"),
        (r#"a "!""#, r#""!""#, "no letter or digit to search for", "/regex/"),
        ("//", "//", "no letter or digit to search for", "/regex/"),
        ("a - b", "-", "nothing follows the -", "-word"),
        ("(-)", "-", "nothing follows the -", "-word"),
        ("OR a", "OR", "AND and OR stand between", "lower case"),
        ("a OR", "OR", "AND and OR stand between", "lower case"),
        ("a OR AND b", "OR", "AND and OR stand between", "lower case"),
        ("(a AND) b", "AND", "AND and OR stand between", "lower case"),
        ("a -OR", "OR", "AND and OR stand between", "lower case"),
        ("a (b", "(", "the parenthesis is not closed", "add a )"),
        ("a (", "(", "the parenthesis is not closed", "add a )"),
        ("a) b", ")", "no parenthesis is open here", "quotes"),
        (")", ")", "no parenthesis is open here", "quotes"),
        ("a ()", ")", "nothing is inside the parentheses", ""),
        ("a \"b c", "\"", "the quote is not closed", "add a \""),
        ("é project:\"x", "\"", "the quote is not closed", "add a \""),
        ("a /(/ b", "/(/", "invalid regular expression: unclosed group", "quotes"),
        (r"/(\w{500}){500}/", r"/(\w{500}){500}/", "the regular expression is too large", ""),
        ("é rol:user", "rol", "unknown filter \"rol:\"", "did you mean role:?"),
        ("Agent:codex", "Agent", "unknown filter \"Agent:\"", "did you mean agent:?"),
        (
            "foo:bar",
            "foo",
            "unknown filter \"foo:\"",
            "agent: project: role: tool: file: model: branch: since: until: is: in:;",
        ),
        ("foo:\"/a b\"", "foo", "unknown filter \"foo:\"", "the filters are"),
        ("agent: codex", "agent:", "agent: needs a value", "directly behind"),
        ("file:\" \"", "file:\" \"", "file: needs a value", "directly behind"),
        ("agent:emacs", "emacs", "unknown value of agent:", "native, claude-code, codex"),
        ("role:robot", "robot", "unknown value of role:", "user, assistant, tool, system"),
        ("is:\"gone\"", "\"gone\"", "unknown value of is:", "error, thinking, dead, sidechain, compacted"),
        ("in:text", "text", "unknown value of in:", "title"),
        ("a since:yesterday b", "yesterday", "invalid time", "2026-11-01"),
        (&deep, "(", "parentheses are nested deeper than 64", ""),
        (&long, "é", "the query is longer than 4096 bytes", ""),
    ] {
        let error = parse(text).map(|query| tree(query.expr())).unwrap_err();
        assert_eq!(&text[error.at.clone()], wrong, "{text}: {error:?}");
        assert!(error.to_string().starts_with(message), "{text}: {error:?}");
        assert_eq!(error.hint.is_none(), hint.is_empty(), "{text}: {error:?}");
        assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{text}: {error:?}");
    }
}

#[test]
fn a_query_tells_what_it_wants() {
    for (text, terms, has_regex, wants_titles) in [
        ("a -b (c OR -(d -e))", "a c e", false, false),
        ("a* -/x/", "a*", true, false),
        ("\"a b\" -in:title", "a+b", false, true),
        ("role:user", "", false, false),
    ] {
        let query = parse(text).unwrap();
        let found: Vec<String> = query.terms().map(|term| tree(&Expr::Term(term.clone()))).collect();
        assert_eq!(
            (found.join(" ").as_str(), query.has_regex(), query.wants_titles()),
            (terms, has_regex, wants_titles),
            "{text}"
        );
    }
}

/// Facts of a tool's output.
fn facts(files: &[String]) -> DocumentFacts<'_> {
    DocumentFacts {
        agent: "codex",
        project: Some("/home/me/Tide-Table"),
        role: "tool",
        tool: Some("Read"),
        files,
        model: Some("gpt-5.1"),
        branch: Some("feature/Ébb"),
        at: Some(NOW.parse().unwrap()),
        labels: [Label::Error, Label::Dead].into_iter().collect(),
        is_title: false,
    }
}

#[test]
fn a_document_matches_by_its_words() {
    let text =
        "The GitHub action runs parseHTTPResponse2 for snake_case\nin src/main.rs: Élan, a a b, 東京タワー E1234";
    let words = DocumentWords::of(text);
    for (query, expected) in [
        ("github", true),
        ("GitHub", true),
        ("GITHUB", true),
        ("git hub", true),
        ("\"git hub\"", true),
        ("\"hub git\"", false),
        ("\"gi hub*\"", false),
        ("\"github parsehttpresponse2\"", false),
        ("gith", false),
        ("gith*", true),
        ("hub*", true),
        ("parsehttpresponse2", true),
        ("parseHTTPResponse2", true),
        ("\"HTTP response2\"", true),
        ("http_resp*", true),
        ("http_resp", false),
        ("snake_case case_snake", false),
        ("snake case", true),
        ("main.rs src/main", true),
        ("elan ÉLAN e\u{301}lan", true),
        ("\"a a b\"", true),
        ("\"a a a\"", false),
        ("東京 タワー", true),
        ("京東", false),
        ("e1234 -low", true),
        ("e1234 -github", false),
        ("-low", true),
        ("low OR github", true),
        ("(low OR high) github", false),
        (r"/e\d{4}$/", true),
        ("/^in src/", true),
        ("/elan/", false),
        ("\"e1234 x\"", false),
        ("github_action", true),
        ("\"the GITHUB action\"", true),
        ("\"the github actio*\"", true),
        ("runs.parsehttpresponse2.for", true),
        ("\"runs parsehttpres*\"", true),
        ("\"the git hubaction\"", false),
    ] {
        assert_eq!(parse(query).unwrap().matches(&words, text, &facts(&[])), expected, "{query}");
    }
    assert!(parse("GitHub").unwrap().matches(&DocumentWords::of("on github now"), "on github now", &facts(&[])));
}

#[test]
fn a_document_matches_by_its_properties() {
    let files = ["/home/me/Tide-Table/src/Main.rs".to_owned(), "e\u{301}bb.txt".to_owned()];
    let known = facts(&files);
    let unknown = DocumentFacts { project: None, tool: None, files: &[], model: None, branch: None, at: None, ..known };
    for (query, of_known, of_unknown) in [
        ("agent:codex", true, true),
        ("agent:claude", false, false),
        ("project:tide", true, false),
        ("project:TIDE-t", true, false),
        ("project:ebb", false, false),
        ("role:tool", true, true),
        ("-role:tool", false, false),
        ("tool:read", true, false),
        ("tool:rea", false, false),
        ("tool:REA*", true, false),
        ("tool:*", true, false),
        ("file:src/main", true, false),
        ("file:Ébb", true, false),
        ("file:low", false, false),
        ("model:gpt", true, false),
        ("branch:/ebb", true, false),
        ("since:2026-11-15T12:00:00Z", true, false),
        ("until:2026-11-15T12:00:00Z", false, false),
        ("since:2026-11-15 until:2026-11-16", true, false),
        ("is:error is:dead", true, true),
        ("is:thinking", false, false),
        ("is:thinking OR -is:sidechain", true, true),
        ("in:title", false, false),
    ] {
        let query_matches = |facts| parse(query).unwrap().matches(&DocumentWords::default(), "", facts);
        assert_eq!((query_matches(&known), query_matches(&unknown)), (of_known, of_unknown), "{query}");
    }
    assert!(parse("in:title").unwrap().matches(
        &DocumentWords::default(),
        "",
        &DocumentFacts { is_title: true, ..known }
    ));
}

#[test]
fn labels_are_a_set_with_names() {
    for bits in 0..32 {
        let labels = Labels::from_bits(bits);
        assert_eq!(labels.iter().collect::<Labels>().bits(), bits);
    }
    let names: Vec<&str> = facts(&[]).labels.iter().map(Label::name).collect();
    assert_eq!(names, ["error", "dead"]);
}

#[test]
fn deep_groups_and_long_chains_do_not_overflow_the_stack() {
    let deep = format!("{}a{}", "-(".repeat(64), ")".repeat(64));
    assert!(parse(&deep).unwrap().matches(&DocumentWords::of("a"), "a", &facts(&[])));
    for hostile in ["(".repeat(4096), "-(".repeat(2048), ")".repeat(4096), "a OR ".repeat(800), "-".repeat(4096)] {
        assert!(parse(&hostile).is_err());
    }
    assert!(parse(&"(a) ".repeat(65)).is_ok());
    let wide = vec!["a"; 2000].join(" ");
    assert!(parse(&wide).unwrap().matches(&DocumentWords::of("a"), "a", &facts(&[])));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_text_matches_a_query_of_its_own_words(text in any_text()) {
        let mut parts = Vec::new();
        let mut queries = Vec::new();
        each_word(&text, |word| {
            // In quotes, because a word may be `or` or look like a filter; and as it stands in the text.
            queries.extend([format!("\"{}\"", word.text), format!("\"{}\"", &text[word.span.clone()])]);
            queries.push(format!("\"{}\"*", word.text.chars().take(2).collect::<String>()));
            if word.kind == WordKind::Part {
                parts.push(word.text.to_owned());
            }
        });
        queries.extend(parts.windows(3).map(|phrase| format!("\"{}\"", phrase.join(" "))));
        queries.extend(parts.windows(2).map(|both| format!("\"{}\" AND \"{}\"", both[0], both[1])));
        let words = DocumentWords::of(&text);
        for query in queries {
            prop_assert!(parse(&query).unwrap().matches(&words, &text, &facts(&[])), "{} in {:?}", query, text);
        }
    }

    #[test]
    fn any_text_is_a_query_or_an_error_inside_it(text in any_text()) {
        match parse(&text) {
            Ok(query) => {
                query.matches(&DocumentWords::of(&text), &text, &facts(&[]));
                crate::snippet::snippet(&text, &query, 20);
            }
            Err(error) => prop_assert!(text.get(error.at.clone()).is_some(), "{:?}", error),
        }
    }
}
