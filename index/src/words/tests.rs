//! What the words of a text are.

use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization as _;

use super::*;

/// The words of a text, separated by spaces; a whole run is in brackets.
fn words(text: &str) -> String {
    let mut found: Vec<String> = Vec::new();
    each_word(text, |word| {
        found.push(match word.kind {
            WordKind::Part => word.text.to_owned(),
            WordKind::Whole => format!("[{}]", word.text),
        });
    });
    found.join(" ")
}

#[test]
fn text_is_split_into_folded_words() {
    let base64 = "aB3".repeat(22);
    let accents = "é".repeat(65);
    for (text, expected) in [
        ("", ""),
        ("-> … ()", ""),
        ("High water, at 04:12!", "high water at 04 12"),
        ("snake_case kebab-case src/main.rs", "snake case kebab case src main rs"),
        ("don't", "don t"),
        // Accents and case.
        ("Élan e\u{301}lan ELAN", "elan elan elan"),
        ("naïve façade Ångström İstanbul", "naive facade angstrom istanbul"),
        ("ΟΔΟΣ οδός", "οδοσ οδοσ"),
        ("Ёлка Ёлка", "елка елка"),
        ("मुंबई की", "मुंबई की"),
        ("a\u{301}", "a"),
        ("\u{301}a ≠ =\u{338}b", "a b"),
        ("foo…bar “quoted”", "foo bar quoted"),
        // Scripts without spaces.
        ("東京タワー", "東 京 タ ワ ー"),
        ("ガが", "ガ が"),
        ("カ\u{3099}か\u{3099}", "ガ が"),
        ("한국", "한 국"),
        ("\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}", "한 국"),
        ("API設計v2", "api 設 計 v2"),
        // camelCase.
        ("parseHTTPResponse2", "parse http response2 [parsehttpresponse2]"),
        ("GitHub", "git hub [github]"),
        ("Word WORD", "word word"),
        ("iPhone HTTP2Server", "i phone [iphone] http2 server [http2server]"),
        ("3F2A9C utf8 Utf8Error", "3f2a9c utf8 utf8 error [utf8error]"),
        ("élanVital ÉlanVital", "elan vital [elanvital] elan vital [elanvital]"),
        // Long runs.
        (&base64, &base64.to_lowercase()[..64]),
        (&"f".repeat(100), &"f".repeat(64)),
        (&"éB".repeat(33), &"eb".repeat(32)),
        (&accents, &"e".repeat(64)),
    ] {
        assert_eq!(words(text), expected, "{text}");
    }
}

#[test]
fn a_folded_text_keeps_its_separators() {
    for (text, expected) in [
        ("/Home/Me/My-App", "/home/me/my-app"),
        ("Äpp/e\u{301}bb.TXT", "app/ebb.txt"),
        ("か\u{3099}/한", "が/한"),
        ("\u{1100}\u{301}\u{1161}", "가"),
    ] {
        assert_eq!(fold(text), expected, "{text}");
    }
}

#[test]
fn a_span_is_the_place_of_its_word_in_the_original() {
    let text = "Ça: e\u{301}tatCivil 東\u{301}京";
    let mut spans = Vec::new();
    each_word(text, |word| spans.push((word.text.to_owned(), &text[word.span])));
    let expected = [
        ("ca", "Ça"),
        ("etat", "e\u{301}tat"),
        ("civil", "Civil"),
        ("etatcivil", "e\u{301}tatCivil"),
        ("東", "東\u{301}"),
        ("京", "京"),
    ];
    assert_eq!(spans, expected.map(|(word, span)| (word.to_owned(), span)));
}

#[test]
fn every_character_has_the_same_words_in_nfc_and_nfd_and_folds_once() {
    // The others cannot differ: they have one form only.
    let has_forms = |c: &char| !c.to_string().nfd().eq([*c]) || !c.to_lowercase().eq([*c]) || is_combining_mark(*c);
    for c in ('\0'..=char::MAX).filter(has_forms) {
        for text in [format!("a{c}b"), format!("A{c}"), format!("{c}b")] {
            let found = words(&text);
            assert_eq!(found, words(&text.nfc().collect::<String>()), "{text:?} in NFC");
            assert_eq!(found, words(&text.nfd().collect::<String>()), "{text:?} in NFD");
        }
        let folded = fold(&c.to_string());
        assert_eq!(fold(&folded), folded, "{c:?}");
        each_word(&c.to_string(), |word| {
            assert!(!word.text.is_empty(), "{c:?}");
            assert_eq!(words(word.text), word.text, "{c:?}");
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words_of_any_text_lie_on_characters_and_fold_to_themselves(text in any_text()) {
        let mut part_end = 0;
        each_word(&text, |word| {
            assert!(text.get(word.span.clone()).is_some_and(|span| !span.is_empty()), "{word:?}");
            assert!(!word.text.is_empty() && word.text.chars().count() <= MAX_WORD_LETTERS, "{word:?}");
            assert_eq!(words(word.text), word.text);
            if word.kind == WordKind::Part {
                assert!(word.span.start >= part_end, "{word:?} overlaps the part before it");
                part_end = word.span.end;
            }
        });
        prop_assert_eq!(words(&text), words(&text.nfc().collect::<String>()));
        prop_assert_eq!(words(&text), words(&text.nfd().collect::<String>()));
        prop_assert_eq!(fold(&fold(&text)), fold(&text));
    }

    #[test]
    fn bytes_that_are_looked_at_have_every_word_of_their_text(text in any_text()) {
        let searchable = Searchable::new(text.clone().into_bytes());
        each_word(&text, |word| assert!(searchable.may_have(word.text), "{word:?}"));
        if !text.is_ascii() {
            let searchable = Searchable::new(format!("{text} plain").into_bytes());
            assert!(searchable.may_have("plain") && !searchable.may_have("nowhere else"));
        }
    }
}

/// Any text, and text of the pieces that matter here.
pub(crate) fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z0-9]{1,6}",
        "[ _./:\"()*-]{1,3}",
        "[東京がガ한글éÉÅ\u{301}\u{3099}\u{309a}\u{1100}\u{1161}\u{11a8}]{1,4}",
        "\\PC{1,3}",
    ];
    prop_oneof![
        "\\PC{0,40}",
        any::<String>(),
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    ]
}
