//! A walk over a JSON value that unmapped fields and changed parts share. A parsed value has a limited depth.

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::json::number_text;

/// Calls `each` for every value that is not a list or an object: with its path, such as `a.b[].c`, and the nearest key above it.
pub(super) fn each_leaf<'v>(value: &'v Value, each: &mut impl FnMut(&str, &'v str, &'v Value)) {
    walk(&mut String::new(), "", value, each);
}

fn walk<'v>(path: &mut String, key: &'v str, value: &'v Value, each: &mut impl FnMut(&str, &'v str, &'v Value)) {
    if !matches!(value, Value::Array(_) | Value::Object(_)) || number_text(value).is_some() {
        return each(path, key, value);
    }
    for (field, child) in children(value) {
        let length = push(path, field);
        walk(path, field.unwrap_or(key), child, each);
        path.truncate(length);
    }
}

/// The values of an object with their keys, or the items of a list.
pub(super) fn children(value: &Value) -> impl Iterator<Item = (Option<&str>, &Value)> {
    let fields = value
        .as_object()
        .filter(|_| number_text(value).is_none())
        .into_iter()
        .flatten()
        .map(|(key, value)| (Some(key.as_str()), value));
    fields.chain(value.as_array().into_iter().flatten().map(|item| (None, item)))
}

/// Adds a key, or an item of a list, to a path. Returns the length of the path before.
pub(super) fn push(path: &mut String, key: Option<&str>) -> usize {
    let length = path.len();
    match key {
        Some(key) if length > 0 => path.extend([".", key]),
        Some(key) => path.push_str(key),
        None => path.push_str("[]"),
    }
    length
}

pub(super) fn hash(value: &Value) -> u64 {
    xxh3_64(value.to_string().as_bytes())
}
