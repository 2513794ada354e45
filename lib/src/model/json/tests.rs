//! Numbers that a value would change, and JSON around them.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const CHANGED: [&str; 9] = [
    "100000000000000000000000",
    "1e400",
    "-1e-400",
    "18446744073709551616",
    "-9223372036854775809",
    "123456789012345678901234567890",
    "0.1234567890123456789012345",
    "9007199254740993.0",
    "1e99999999999999999999",
];

const SAME: [&str; 8] = ["0", "-1", "1.0", "-0.0", "18446744073709551615", "-9223372036854775808", "0.1", "1e+300"];

/// Other spellings of numbers that a value holds.
const RESPELLED: [&str; 9] = ["-0", "1E5", "1e5", "0.10", "1.00", "1e+3", "1e300", "1e-07", "-0.00"];

#[test]
fn a_number_that_a_value_holds_is_an_ordinary_one() {
    for text in RESPELLED {
        let value = parse(text).unwrap();
        assert!(number_text(&value).is_none(), "{text}");
        assert_eq!(value.as_f64(), text.parse().ok(), "{text}");
    }
}

#[test]
fn every_number_is_written_as_it_was_read() {
    for number in CHANGED.iter().chain(&SAME) {
        for around in ["N", "[N]", "{\"a\":N}", "[N,[N],{\"a\":N,\"b\":{},\"c\":{\"\":N,\"\\n\":[]}},\"N 1e400\"]"] {
            let text = around.replace('N', number);
            assert_eq!(to_string(&parse(&text).unwrap()), text);
        }
        let value = parse(number).unwrap();
        assert_eq!(number_text(&value), CHANGED.contains(number).then_some(*number));
    }
}

#[test]
fn many_lines_have_the_same_numbers() {
    let value = parse("{\"a\":[1e400,{}],\"b\":{\"c\":-1e400}}").unwrap();
    let expected = "{\n  \"a\": [\n    1e400,\n    {}\n  ],\n  \"b\": {\n    \"c\": -1e400\n  }\n}";
    assert_eq!(to_string_pretty(&value), expected);
}

#[test]
fn what_is_no_number_is_not_json_either_way() {
    for text in ["01", "1.", ".5", "+1", "1e", "--1", "1e5.5", "00000000000000000000001", "[1-2]", "1.5e+"] {
        assert!(parse(text).is_err(), "{text}");
    }
    assert_eq!(marked("\"1e400\\\"1e400"), "\"1e400\\\"1e400");
}

#[test]
fn plain_numbers_are_rounded_and_never_lost() {
    let value = parse("[1E5, 123456789012345678901234567890, {\"a\": -0}, 1e400, \"1E5\"]").unwrap();
    assert_eq!(
        plain(value),
        json!([100_000.0, 123_456_789_012_345_680_000_000_000_000.0, {"a": -0.0}, "1e400", "1E5"])
    );
    assert_eq!(as_f64(&parse("1.50").unwrap()), Some(1.5));
}

#[test]
fn an_object_of_a_file_is_never_a_number() {
    let text = format!("{{\"{}\":\"1\"}}", NUMBER.replace("number ", "number  "));
    assert_eq!(to_string(&parse(&text).unwrap()), text);
}

#[test]
fn other_types_are_written_as_serde_json_writes_them() {
    let by_number = std::collections::BTreeMap::from([(1_u64, ("x", Some(1.5))), (2, ("", None))]);
    assert_eq!(to_string(&by_number), serde_json::to_string(&by_number).unwrap());
    assert_eq!(to_string_pretty(&by_number), serde_json::to_string_pretty(&by_number).unwrap());
}

proptest! {
    #[test]
    fn any_text_is_json_or_not_as_serde_json_says(text in "[-+0-9.eE\\[\\]{}:,\"a\\\\ ]{0,24}") {
        // A number beyond f64 is JSON, although serde_json has no value for it.
        let is_json = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
        prop_assert_eq!(parse(&text).is_ok(), is_json);
    }
}
