//! Payloads in every construct, judged by a terminal parser; and properties over any text and width.

use proptest::prelude::*;
use unicode_width::UnicodeWidthStr as _;

use crate::terminal::{Look, MIN_COLUMNS, markdown::render, width};

/// A terminal that notes everything but printing, line feeds and SGR.
#[derive(Default)]
struct Judge {
    printed: String,
    forbidden: Vec<String>,
    styled: bool,
}

impl vte::Perform for Judge {
    fn print(&mut self, c: char) {
        self.printed.push(c);
    }

    fn execute(&mut self, byte: u8) {
        if byte != b'\n' {
            self.forbidden.push(format!("control {byte:#x}"));
        } else if self.styled {
            self.forbidden.push("a line ends in a style".to_owned());
        }
        self.printed.push('\n');
    }

    fn csi_dispatch(&mut self, params: &vte::Params, intermediates: &[u8], _ignore: bool, action: char) {
        if action != 'm' || !intermediates.is_empty() {
            self.forbidden.push(format!("CSI {action}"));
        }
        self.styled = params.iter().next() != Some(&[0]);
    }

    fn esc_dispatch(&mut self, _intermediates: &[u8], _ignore: bool, byte: u8) {
        self.forbidden.push(format!("ESC {byte:#x}"));
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], _bell_terminated: bool) {
        self.forbidden.push(format!("OSC {params:?}"));
    }

    fn hook(&mut self, _params: &vte::Params, _intermediates: &[u8], _ignore: bool, action: char) {
        self.forbidden.push(format!("DCS {action}"));
    }
}

fn judge(output: &str) -> Judge {
    let mut judge = Judge::default();
    let mut parser = vte::Parser::new();
    parser.advance(&mut judge, output.as_bytes());
    // A sequence that was begun and not ended would swallow this.
    parser.advance(&mut judge, b"\nend");
    assert!(judge.printed.ends_with("\nend"), "unfinished sequence in {output:?}");
    judge
}

/// Characters that must never be printed as they are: bidi controls, zero width, tags.
fn acts(c: char) -> bool {
    matches!(c, '\u{80}'..='\u{9f}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{ad}' | '\u{e0000}'..='\u{e007f}')
}

fn assert_harmless(source: &str, columns: usize) {
    for colour in [false, true] {
        let output = render(source, &Look { width: columns, code: columns, colour });
        let judged = judge(&output);
        assert!(judged.forbidden.is_empty(), "{:?} from {source:?}", judged.forbidden);
        assert!(colour || !output.contains('\u{1b}'), "escape without colour from {source:?}");
        let active = |c: char| acts(c) && !(c == '\u{200d}' && source.contains('👩'));
        assert!(!judged.printed.contains(active), "{:?} from {source:?}", judged.printed);
        for line in judged.printed.lines() {
            let limit = columns.max(MIN_COLUMNS);
            assert!(width::of(line) <= limit, "{line:?} is wider than {limit}, from {source:?}");
            assert!(line.width() <= limit, "{line:?} is wider than {limit}, from {source:?}");
        }
    }
}

const PAYLOADS: &[&str] = &[
    "\u{1b}[31mred",
    "\u{1b}[2J\u{1b}[H",
    "\u{1b}]8;;http://evil\u{1b}\\link\u{1b}]8;;\u{1b}\\",
    "\u{1b}]52;c;ZXZpbA==\u{7}",
    "\u{1b}]0;title\u{7}",
    "\u{1b}P+q544e\u{1b}\\",
    "\u{1b}_apc\u{1b}\\\u{1b}^pm\u{1b}\\",
    "\u{1b}c\u{1b}7\u{1b}(0",
    "\u{9b}31m\u{9d}52;c;eA==\u{9c}\u{90}q\u{9c}\u{85}\u{8d}",
    "\u{1b}",
    "a\rb\u{8}\u{8}c\u{b}d\u{c}e\u{7}f\u{0}g\u{7f}h\u{e}i",
    "&#27;[31m&#x9b;2J&#7;&#8238;&#8203;",
    "\\\u{1b}[1m\\\u{9b}",
    "admin\u{202e}txt.exe\u{202c}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}",
    "pay\u{200b}load\u{200c}\u{200d}\u{2060}\u{feff}\u{ad}\u{2028}\u{2029}",
    "\u{e0001}\u{e0068}\u{e0069}\u{e007f}",
];

const CONSTRUCTS: &[&str] = &[
    "@",
    "# @",
    "@\n===",
    "*@* **@** ~~@~~ `@`",
    "- @\n  1. @\n- [x] @",
    "> @\n> > @",
    "```\n@\n```",
    "```rust\nlet x = \"@\"; // @\n```",
    "```@\ncode\n```",
    "~~~rust @\ncode\n~~~",
    "    @",
    "| @ | b |\n|--|--|\n| @ | **@** |",
    "|@|@|@|@|@|@|@|\n|-|-|-|-|-|-|-|\n|@|@|@|@|@|@|@|",
    "[@](<@>)",
    "[text](<http://x/@> \"@\")",
    "[text][r]\n\n[r]: <@> '@'",
    "<http://x/@>",
    "![@](<@>)",
    "text[^@]\n\n[^@]: @",
    "<div title=\"@\">\n@\n</div>",
    "a <b title=\"@\">@</b>",
    "<!-- @ -->",
    "line\n@\nline  \n@",
];

#[test]
fn no_payload_acts_in_any_construct() {
    for construct in CONSTRUCTS {
        for payload in PAYLOADS {
            for columns in [1, 20, 80] {
                assert_harmless(&construct.replace('@', payload), columns);
            }
        }
    }
}

#[test]
fn no_construct_loses_its_text() {
    for construct in CONSTRUCTS {
        let source = construct.replace('@', "word");
        // Only the language of a fence, the title of a link and the address of an image are not shown;
        // a table without room repeats its headings.
        let expected = match *construct {
            "```@\ncode\n```" | "~~~rust @\ncode\n~~~" => 0,
            "[@](<@>)" | "![@](<@>)" | "[text](<http://x/@> \"@\")" | "[text][r]\n\n[r]: <@> '@'" => 1,
            _ => construct.matches('@').count(),
        };
        for colour in [false, true] {
            let shown = judge(&render(&source, &Look { width: 60, code: 60, colour })).printed;
            assert_eq!(shown.matches("word").count(), expected, "{source:?} became {shown}");
        }
    }
}

#[test]
fn the_judge_knows_a_bad_output() {
    for bad in ["\u{1b}[2J", "\u{1b}]52;c;eA==\u{7}", "\u{1b}Pq\u{1b}\\", "\u{1b}c", "\r", "\u{7}", "\u{1b}[1mbold\n"] {
        assert!(!judge(bad).forbidden.is_empty(), "{bad:?}");
    }
    assert!(judge("\u{1b}[1mbold\u{1b}[0m\n").forbidden.is_empty());
}

#[test]
fn large_and_deep_texts_stay_in_proportion() {
    let texts = [
        "> ".repeat(20_000) + "x\n" + &"> y\n".repeat(20_000),
        "> ".repeat(200) + "x\n" + &"> y\n".repeat(20_000),
        "- ".repeat(20_000) + "x" + &"\n".repeat(20_000),
        "- ".repeat(200) + "x" + &"\n".repeat(20_000),
        "1. ".repeat(20_000) + "x",
        "*a ".repeat(50_000),
        "[a](b) ".repeat(50_000),
        "![".repeat(50_000),
        "世界".repeat(50_000),
        "a\u{301}".repeat(50_000),
        "\u{1100}".repeat(50_000),
        "word ".repeat(100_000),
        format!("|{0}\n|{1}\n|{0}\n", "a|".repeat(2_000), "-|".repeat(2_000)),
        format!("|{}|b|\n|-|-|\n{}", "h".repeat(50_000), "|x|y|\n".repeat(20_000)),
        format!("```\n{}\n```", "x".repeat(1_000_000)),
        format!("[{}]: {}\n\n{}", "a", "u".repeat(50_000), "[a] ".repeat(20_000)),
    ];
    for text in texts {
        let output = render(&text, &Look { width: 80, code: 80, colour: true });
        assert!(output.len() < 40 * text.len() + 1000, "{} bytes became {}", text.len(), output.len());
    }
}

/// Pieces of Markdown, so that random texts are more than paragraphs.
fn markdown_soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => proptest::sample::select(vec![
            "\n", "\n\n", " ", "  ", "\t", "> ", "- ", "1. ", "999999999. ", "- [x] ", "# ", "###### ", "```", "```rust\n", "~~~",
            "|", "|-|-|\n", "|a|b|\n", "---", "*", "**", "_", "~~", "`", "[", "](", ")", "![", "<", ">", "<b>", "<!--",
            "[^1]", "[^1]: ", "\\", "&#27;", "&nbsp;", "\r", "\r\n", "世界", "👩‍👩‍👧", "🇩🇪", "❤\u{fe0f}", "\u{fe0f}", "\u{17d8}", "e\u{301}", "\u{1100}\u{1100}", "\u{a3e}",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "[a-z]{1,40}",
        1 => proptest::sample::select(PAYLOADS.to_vec()).prop_map(str::to_owned),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_markdown_at_any_width_is_harmless(source in markdown_soup(), columns in 1_usize..200) {
        assert_harmless(&source, columns);
    }

    #[test]
    fn any_text_at_any_width_is_harmless(source in any::<String>(), columns in 1_usize..200) {
        assert_harmless(&source, columns);
    }
}
