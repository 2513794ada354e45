//! Each construct as it looks without colour at 40 columns, and some with.

use crate::terminal::{Look, markdown::render};

fn plain(source: &str) -> String {
    render(source, &Look { width: 40, code: 40, colour: false })
}

/// Escapes as `^`, so that a snapshot can be read.
fn coloured(source: &str) -> String {
    render(source, &Look { width: 40, code: 40, colour: true }).replace('\u{1b}', "^")
}

#[test]
fn paragraphs_are_wrapped_and_parted() {
    insta::assert_snapshot!(plain("One paragraph that is\nlonger than a single line of forty.\n\nAnother,  \nwith a break."), @"
        One paragraph that is longer than a
        single line of forty.

        Another,
        with a break.
        ");
}

#[test]
fn headings_show_their_level_and_hang() {
    insta::assert_snapshot!(plain("# Title\ntext\n## A heading that is too long for only one line\n###\nend"), @"
        # Title

        text

        ## A heading that is too long for only
           one line

        ###

        end
        ");
}

#[test]
fn inline_marks_become_styles() {
    insta::assert_snapshot!(coloured("*it* **bold** ***both*** ~~gone~~ `code` [a](b)"), @"^[3mit^[0m ^[1mbold^[0m ^[1m^[3mboth^[0m ^[9mgone^[0m ^[36mcode^[0m ^[4ma^[0m^[2m (b)^[0m");
}

#[test]
fn without_colour_the_marks_with_a_meaning_stay() {
    insta::assert_snapshot!(plain("*it* **bold** ~~gone~~ `code`"), @"it bold ~~gone~~ `code`");
}

#[test]
fn styles_end_with_the_line_and_start_again() {
    insta::assert_snapshot!(coloured("**bold words that go on and on over the edge of the line**"), @"
        ^[1mbold words that go on and on over the^[0m
        ^[1medge of the line^[0m
        ");
}

#[test]
fn lists_nest_with_hanging_indents() {
    insta::assert_snapshot!(plain("
- first item that is long enough to be wrapped
  - nested
    1. numbered
    2. numbered that is long enough to wrap
- [x] done
- [ ] to do
-
9. nine
10. ten
"), @"
        • first item that is long enough to be
          wrapped
          • nested
            1. numbered
            2. numbered that is long enough to
               wrap
        • [x] done
        • [ ] to do
        •

        9. nine
        10. ten
        ");
}

#[test]
fn loose_items_are_parted() {
    insta::assert_snapshot!(plain("Before:\n- one\n\n  more of one\n\n- two\n\n  ```\n  code\n  ```\nafter"), @"
        Before:

        • one

          more of one

        • two

            code

        after
        ");
}

#[test]
fn quotes_have_a_bar_on_every_line() {
    insta::assert_snapshot!(plain("Look:\n> quoted text that is longer than one line\n>\n> > deeper\n> - item\n\nend"), @"
        Look:

        │ quoted text that is longer than one
        │ line
        │
        │ │ deeper
        │
        │ • item

        end
        ");
}

#[test]
fn code_is_indented_and_cut_at_the_edge() {
    insta::assert_snapshot!(plain("Run:\n```sh\n\techo tab\n\necho a very long command line that does not fit\n```\n    indented\nend"), @"
        Run:

              echo tab

          echo a very long command line that doe
          s not fit

          indented

        end
        ");
}

#[test]
fn code_is_coloured_by_its_language() {
    insta::assert_snapshot!(coloured("```rust,ignore\nfn main() { // hi\n    let s = \"x\";\n}\n```"), @r#"
        ^[35mfn^[0m ^[34mmain^[0m() { ^[32m// hi^[0m
            ^[35mlet^[0m s = ^[32m"x"^[0m;
        }
        "#);
}

#[test]
fn code_of_an_unknown_language_is_plain() {
    insta::assert_snapshot!(coloured("```nonsense\nfn main() {}\n```"), @"  fn main() {}");
}

#[test]
fn tables_are_boxed_and_aligned() {
    insta::assert_snapshot!(plain("| Name | Count | Note |\n|:--|--:|:-:|\n| 世界 | 1 | `a` |\n| b | 20 |\n"), @"
        ┌──────┬───────┬──────┐
        │ Name │ Count │ Note │
        ├──────┼───────┼──────┤
        │ 世界 │     1 │ `a`  │
        │ b    │    20 │      │
        └──────┴───────┴──────┘
        ");
}

#[test]
fn a_table_and_code_in_an_item_stand_below_its_text() {
    insta::assert_snapshot!(plain("- see\n  |a|b|\n  |-|-|\n  |1|2|\n  |3|4|\n- run\n  ```\n  x\n  ```\n"), @"
        • see
          ┌───┬───┐
          │ a │ b │
          ├───┼───┤
          │ 1 │ 2 │
          │ 3 │ 4 │
          └───┴───┘

        • run
            x
        ");
}

#[test]
fn wide_cells_are_wrapped() {
    insta::assert_snapshot!(plain("| Key | Meaning |\n|--|--|\n| k | a long explanation that needs several lines, and averyveryverylongwordindeed |\n"), @"
        ┌─────┬────────────────────────────────┐
        │ Key │ Meaning                        │
        ├─────┼────────────────────────────────┤
        │ k   │ a long explanation that needs  │
        │     │ several lines, and             │
        │     │ averyveryverylongwordindeed    │
        └─────┴────────────────────────────────┘
        ");
}

#[test]
fn a_table_without_room_is_shown_cell_by_cell() {
    insta::assert_snapshot!(plain("|a|b|c|d|e|a heading that is far too long|\n|-|-|-|-|-|-|\n|1|2|3|4||6|\n|7|8|9|10|11|12|\n"), @"
        a: 1
        b: 2
        c: 3
        d: 4
        a heading that …: 6

        a: 7
        b: 8
        c: 9
        d: 10
        e: 11
        a heading that …: 12
        ");
}

#[test]
fn links_name_their_address_unless_it_is_their_text() {
    insta::assert_snapshot!(plain("[text](https://a.b/c) <https://a.b> <me@a.b> [ref]\n\n[ref]: /path 'title'"), @"
        text (https://a.b/c) https://a.b me@a.b
        ref (/path)
        ");
}

#[test]
fn images_are_named_never_loaded() {
    insta::assert_snapshot!(plain("![a cat](http://evil/x.png) [![badge](b.svg)](http://ci)"), @"
        [image: a cat] [image: badge]
        (http://ci)
        ");
}

#[test]
fn footnotes_are_plain() {
    insta::assert_snapshot!(plain("Text[^1] and[^a-very-long-label].\n\n[^1]: The note,\n    of two lines.\n[^a-very-long-label]: Other.\n"), @"
        Text[^1] and[^a-very-long-label].

        [^1]: The note, of two lines.

        [^a-very-long-label]:
          Other.
        ");
}

#[test]
fn html_is_text() {
    insta::assert_snapshot!(plain("a <b>bold</b> word\n\n<script>\n  alert(1)\n</script>\n\n<!-- hidden? -->"), @"
        a <b>bold</b> word

        <script>
          alert(1)
        </script>

        <!-- hidden? -->
        ");
}

#[test]
fn rules_fill_the_line() {
    insta::assert_snapshot!(plain("a\n\n---\n> ***\n"), @"
        a

        ────────────────────────────────────────

        │ ──────────────────────────────────────
        ");
}

#[test]
fn deep_nesting_stays_readable() {
    insta::assert_snapshot!(plain(&format!("{}deep\n\nend", "> ".repeat(100))), @"
        │ │ │ │ │ │ │ │ │ │ deep

        end
        ");
    insta::assert_snapshot!(plain(&format!("{}deep", "- ".repeat(100))), @"• • • • • • • • • • deep");
}

#[test]
fn nesting_beyond_measure_is_shown_as_written() {
    for marker in ["> ", ">", "- ", "1. ", "2) >"] {
        let source = format!("**not** bold\n{}x\n", marker.repeat(1000));
        assert_eq!(plain(&source).replace('\n', ""), source.replace('\n', ""));
    }
    let after_return = format!("**not** bold\r{}x", "> ".repeat(1000));
    assert!(plain(&after_return).starts_with("**not** bold␍> > "));
    for line in ["-", ".", "1 ", "1.5 "] {
        assert_eq!(plain(&format!("**bold**\n\n{}", line.repeat(1000))).lines().next(), Some("bold"));
    }
}

#[test]
fn nothing_gives_nothing() {
    assert_eq!(plain(""), "");
    assert_eq!(plain("\n \n"), "");
}
