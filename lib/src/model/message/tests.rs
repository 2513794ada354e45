//! Nothing is lost in reading, and each SDK gets what it has a place for.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Message, Part, Role, Sdk, ToolPart, ToolState};

#[test]
fn every_part_in_every_state_comes_out_as_it_went_in() {
    for (name, part) in every_part() {
        let read = Part::from(part.clone());
        assert_eq!(serde_json::to_value(&read).unwrap(), part, "{name}");
        let misfit = ["an unknown state", "unknown type", "no type", "no object", "step start with a key"];
        let known = !misfit.iter().any(|words| name.contains(words));
        assert_eq!(known, !matches!(read, Part::Other(_)), "{name}");
    }
}

#[test]
fn a_part_that_does_not_fit_its_type_is_kept_as_it_was() {
    for part in [
        json!(null),
        json!({"type": "text"}),
        json!({"type": "text", "text": null, "state": "done"}),
        json!({"type": "file", "url": "https://example.com/"}),
        json!({"type": "data-note"}),
        json!({"type": "dynamic-tool", "toolCallId": "c", "state": "input-streaming"}),
        json!({"type": "tool-Bash", "toolCallId": "c", "state": "input-available"}),
        json!({"type": "tool-Bash", "toolCallId": "c", "state": "output-denied", "input": 1, "approval": "no"}),
    ] {
        assert_eq!(Part::from(part.clone()), Part::Other(part));
    }
}

#[test]
fn null_is_not_the_same_as_absent() {
    let message = json!({"id": "m", "role": "user", "metadata": null, "parts": [
        {"type": "text", "text": "Hello", "state": null, "providerMetadata": null},
        {"type": "tool-Bash", "toolCallId": "c", "state": "output-available", "input": null, "output": null,
         "title": null, "approval": null, "preliminary": null},
    ]});
    let read: Message = serde_json::from_value(message.clone()).unwrap();
    assert_eq!(read.metadata, None);
    assert!(matches!(read.parts[1], Part::Tool(_)));
    assert_eq!(serde_json::to_value(read).unwrap(), message);
}

#[test]
fn what_is_no_message_is_an_error_that_names_the_key() {
    for (broken, key) in [
        (json!({"role": "user", "parts": []}), "id"),
        (json!({"id": "m", "role": "tool", "parts": []}), "role"),
        (json!({"id": "m", "role": "user", "content": "Hello"}), "parts"),
    ] {
        let error = serde_json::from_value::<Message>(broken).unwrap_err();
        assert_eq!(error.to_string(), format!("not a message: `{key}` is missing or invalid"));
    }
}

#[test]
fn for_sdk_7_only_what_it_refuses_is_changed() {
    let changed: Vec<String> = every_part()
        .into_iter()
        .filter(|(_, part)| for_sdk(part, Sdk::V7) != *part)
        .map(|(name, _)| name)
        .collect();
    insta::assert_snapshot!(changed.join("\n"), @"
    text with a citation of the wrong shape
    file by path
    steering with a part that does not belong
    step start with a key
    data with a key
    dynamic-tool approval-responded without answer
    dynamic-tool output-available without output
    dynamic-tool output-available after a no
    dynamic-tool output-denied after a yes
    dynamic-tool denied with a result's metadata
    tool-Bash approval-responded without answer
    tool-Bash output-available without output
    tool-Bash output-available after a no
    tool-Bash output-denied after a yes
    dynamic-tool in an unknown state
    unknown type
    no type
    no object
    metadata that is not one object per provider
    tool-Bash with raw input of the wrong type
    file by path with a reference of the wrong type
    steering with a file by path
    steering without parts
    ");
}

#[test]
fn making_ready_twice_is_making_ready_once() {
    for (name, part) in every_part() {
        for sdk in [Sdk::V5, Sdk::V6, Sdk::V7] {
            let once = for_sdk(&part, sdk);
            assert_eq!(for_sdk(&once, sdk), once, "{name}, {sdk}");
        }
    }
}

#[test]
fn sdk_5_gets_approvals_as_calls_and_refusals_as_errors() {
    let asked = json!({"type": "dynamic-tool", "toolName": "Bash", "toolCallId": "c", "state": "approval-requested",
                       "input": {}, "approval": {"id": "a"}, "title": "Shell"});
    insta::assert_snapshot!(for_sdk(&asked, Sdk::V5), @r#"{"type":"dynamic-tool","toolName":"Bash","toolCallId":"c","state":"input-available","input":{},"callProviderMetadata":{"scrollback":{"state":"approval-requested","approval":{"id":"a"},"title":"Shell"}}}"#);
    let denied = json!({"type": "tool-Bash", "toolCallId": "c", "state": "output-denied", "input": {},
                        "approval": {"id": "a", "approved": false, "reason": "Not there."},
                        "callProviderMetadata": {"scrollback": {"record": "r"}}});
    insta::assert_snapshot!(for_sdk(&denied, Sdk::V5), @r#"{"type":"tool-Bash","toolCallId":"c","state":"output-error","input":{},"errorText":"Not there.","callProviderMetadata":{"scrollback":{"record":"r","state":"output-denied","approval":{"id":"a","approved":false,"reason":"Not there."}}}}"#);
}

#[test]
fn a_part_that_an_sdk_does_not_know_becomes_data() {
    let custom = json!({"type": "custom", "kind": "openai.compaction", "providerMetadata": {"openai": {"id": "i"}}});
    insta::assert_snapshot!(for_sdk(&custom, Sdk::V6), @r#"{"type":"data-custom","data":{"kind":"openai.compaction","providerMetadata":{"openai":{"id":"i"}}}}"#);
    let file = json!({"type": "reasoning-file", "mediaType": "image/png", "url": "data:,x"});
    insta::assert_snapshot!(for_sdk(&file, Sdk::V5), @r#"{"type":"data-reasoning-file","data":{"mediaType":"image/png","url":"data:,x"}}"#);
    let unknown = json!({"type": "hologram", "voxels": []});
    insta::assert_snapshot!(for_sdk(&unknown, Sdk::V7), @r#"{"type":"data-unknown","data":{"part":{"type":"hologram","voxels":[]}}}"#);
    let unreachable = json!({"type": "file", "mediaType": "image/png", "url": "a.png"});
    insta::assert_snapshot!(for_sdk(&unreachable, Sdk::V7), @r#"{"type":"data-file","data":{"mediaType":"image/png","url":"a.png"}}"#);
}

#[test]
fn a_key_that_an_sdk_does_not_know_moves_to_our_metadata() {
    let text =
        json!({"type": "text", "text": "Hi", "color": "red", "providerMetadata": {"scrollback": {"record": "r"}}});
    insta::assert_snapshot!(for_sdk(&text, Sdk::V7), @r#"{"type":"text","text":"Hi","providerMetadata":{"scrollback":{"record":"r","color":"red"}}}"#);
    let message = json!({"id": "m", "role": "assistant", "metadata": {"model": "x"}, "parts": [], "createdAt": 1});
    let message = serde_json::from_value::<Message>(message).unwrap().for_sdk(Sdk::V7);
    insta::assert_snapshot!(json!(message), @r#"{"id":"m","role":"assistant","metadata":{"model":"x","scrollback":{"createdAt":1}},"parts":[]}"#);
}

#[test]
fn a_user_message_without_parts_gets_an_empty_text() {
    let parts = |role| Message::new("m", role, vec![]).for_sdk(Sdk::V7).parts;
    assert_eq!(parts(Role::User), [Part::text("")]);
    assert_eq!(parts(Role::System), [Part::text("")]);
    assert_eq!(parts(Role::Assistant), []);
}

#[test]
fn a_call_is_open_until_it_has_an_outcome() {
    let call = |state| ToolPart::dynamic("Bash", "c", state);
    assert!(call(ToolState::InputStreaming { input: None }).is_open());
    assert!(call(ToolState::called(json!({}))).is_open());
    assert!(!call(ToolState::done(json!({}), json!("ok"))).is_open());
    let failed = call(ToolState::failed(json!({"a": 1}), "no"));
    assert!(!failed.is_open());
    assert_eq!((failed.input(), failed.output()), (Some(&json!({"a": 1})), None));
}

#[test]
fn an_sdk_is_named_by_its_major() {
    for sdk in [Sdk::V5, Sdk::V6, Sdk::V7] {
        assert_eq!(sdk.to_string().parse(), Ok(sdk));
    }
    let error = "4".parse::<Sdk>().unwrap_err();
    insta::assert_snapshot!(error, @r#"unknown AI SDK version "4"; use 5, 6 or 7"#);
}

proptest! {
    #[test]
    fn any_json_is_a_part_and_comes_out_as_it_went_in(part in any_part()) {
        let read = serde_json::from_value::<Part>(part.clone()).unwrap();
        prop_assert_eq!(serde_json::to_value(&read).unwrap(), part);
    }

    #[test]
    fn any_message_comes_out_as_it_went_in(
        parts in prop::collection::vec(any_part(), 0..4), rest in any_object(), id in ".*"
    ) {
        let mut message = rest;
        message.insert("id".to_owned(), json!(id));
        message.insert("role".to_owned(), json!("assistant"));
        message.insert("parts".to_owned(), json!(parts));
        let read: Message = serde_json::from_value(Value::Object(message.clone())).unwrap();
        prop_assert_eq!(serde_json::to_value(&read).unwrap(), Value::Object(message));
    }
}

fn every_part() -> Map<String, Value> {
    serde_json::from_str(include_str!("../../../tests/aisdk/parts.json")).unwrap()
}

fn for_sdk(part: &Value, sdk: Sdk) -> Value {
    let message = Message::new("m", Role::Assistant, vec![part.clone().into()]).for_sdk(sdk);
    serde_json::to_value(&message.parts[0]).unwrap()
}

/// Parts as they should be with some keys replaced by anything, and plain anything.
fn any_part() -> impl Strategy<Value = Value> {
    let parts: Vec<Value> = every_part().into_iter().map(|(_, part)| part).filter(Value::is_object).collect();
    let disturbed = (prop::sample::select(parts), any_object(), prop::collection::vec(any::<bool>(), 16)).prop_map(
        |(part, other, keep)| {
            let kept = part.as_object().cloned().unwrap_or_default().into_iter().zip(keep);
            let kept = kept.filter_map(|(entry, keep)| keep.then_some(entry));
            Value::Object(other.into_iter().chain(kept).collect())
        },
    );
    prop_oneof![disturbed, any_object().prop_map(Value::Object), any_json()]
}

fn any_object() -> impl Strategy<Value = Map<String, Value>> {
    const KEYS: &str = "type|text|state|id|input|output|approval|errorText|metadata|data|url|title|[a-z]{0,3}";
    prop::collection::vec((KEYS, any_json()), 0..6).prop_map(|entries| entries.into_iter().collect())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        prop::sample::select(vec!["text", "step-start", "tool-x", "data-x", "output-denied", "done"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("id|text|[a-z]{1,3}", inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}
