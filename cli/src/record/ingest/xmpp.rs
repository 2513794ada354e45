//! A message from XMPP: its body, files, sender, and the message that it reacts to.

use scrollback::dialect::fluux_room::{Reaction, SharedFile, Speaker, Stanza};
use scrollback::model::{Body, quoted};
use serde_json::{Map, Value};

use super::fields::{Fields, wrong};
use super::{Parsed, Refused};

/// First labels of domains that are rooms by custom; they decide where a message does not.
const ROOM_DOMAINS: [&str; 5] = ["muc", "conference", "conf", "rooms", "groupchat"];

/// Adds a missing sender: the person or room of the session. A message from anybody else is refused.
pub(super) fn fill_sender(message: &mut Value, with: &str) -> Result<(), Refused> {
    if let Value::String(body) = message {
        *message = Value::Object(Map::from_iter([("body".to_owned(), std::mem::take(body).into())]));
    }
    if let Value::Object(fields) = message {
        let from = fields.entry("from").or_insert_with(|| with.into());
        let bare = |jid: &str| jid.split('/').next().unwrap_or_default().to_lowercase();
        if let Some(from) = from.as_str().filter(|from| bare(from) != bare(with)) {
            return Err(Refused(format!(
                "message: from is {}, but the session is with {}",
                quoted(from),
                quoted(with)
            )));
        }
    }
    Ok(())
}

/// `{body, oob, from, room, id, reaction}`.
pub(super) fn parse(value: Value, parsed: &mut Parsed) -> Result<(), Refused> {
    let Value::Object(object) = value else { return Err(wrong(&["it"], "an object with a body", &value)) };
    let mut fields = Fields(object);
    let body = fields.text(&["body"])?.unwrap_or_default();
    let from = fields.needed(&["from"])?;
    let room = match (fields.flag(&["room"])?, fields.text(&["type"])?.as_deref()) {
        // It repeats what could not be delivered.
        (_, Some("error")) => return Err(Refused::because("its type is error: it could not be delivered")),
        (Some(room), _) => room,
        (None, Some("groupchat")) => true,
        (None, Some("chat")) => false,
        (None, Some(_) | None) => is_room(&from),
    };
    let id = fields.text(&["id"])?;
    let files = fields.any(&["oob"]).map(|oob| files(oob, parsed)).transpose()?.unwrap_or_default();
    let reaction = fields.any(&["reaction"]).map(|value| reaction(value, parsed)).transpose()?;
    if body.trim().is_empty() && files.is_empty() && reaction.is_none() {
        return Err(Refused::because("body, oob or reaction is missing"));
    }
    fields.0.keys().for_each(|key| parsed.lose(key.as_str()));
    let stanza = Stanza { id, from: speaker(from, room)?, body, files, reaction };
    parsed.body(Body::User(stanza.content()));
    Ok(())
}

fn speaker(from: String, room: bool) -> Result<Speaker, Refused> {
    let (bare, resource) = from.split_once('/').unwrap_or((&from, ""));
    match room {
        _ if bare.trim().is_empty() => Err(Refused(format!("from is {} and should be a JID", quoted(&from)))),
        // The room itself sends changes of its subject and greetings.
        true if resource.is_empty() => {
            Err(Refused(format!("from is {} and should name somebody in the room", quoted(&from))))
        }
        true => Ok(Speaker::Occupant(resource.to_owned())),
        false => Ok(Speaker::Person(from)),
    }
}

fn is_room(from: &str) -> bool {
    let bare = from.split('/').next().unwrap_or_default();
    let domain = bare.split_once('@').map_or("", |(_, domain)| domain);
    let label = domain.split('.').next().unwrap_or_default();
    ROOM_DOMAINS.iter().any(|known| known.eq_ignore_ascii_case(label))
}

fn files(value: Value, parsed: &mut Parsed) -> Result<Vec<SharedFile>, Refused> {
    let list = if let Value::Array(list) = value { list } else { vec![value] };
    let mut files = Vec::new();
    for value in list {
        let file = match value {
            Value::String(url) => SharedFile { url, mime_type: None, size_bytes: None },
            Value::Object(object) => {
                let mut fields = Fields(object);
                let url = fields.needed(&["url"])?;
                let mime_type = fields.text(&["mimeType", "mime_type", "mediaType"])?;
                let size_bytes = fields.count(&["size", "sizeBytes"])?;
                fields.0.keys().for_each(|key| parsed.lose(format!("oob {key}")));
                SharedFile { url, mime_type, size_bytes }
            }
            other => return Err(wrong(&["oob"], "a list of addresses", &other)),
        };
        if file.url.trim().is_empty() {
            parsed.lose("oob without an address");
        } else {
            files.push(file);
        }
    }
    Ok(files)
}

fn reaction(value: Value, parsed: &mut Parsed) -> Result<Reaction, Refused> {
    let Value::Object(object) = value else { return Err(wrong(&["reaction"], "an object", &value)) };
    let mut fields = Fields(object);
    let message_id = fields.needed(&["messageId", "message_id"])?;
    if message_id.is_empty() {
        return Err(Refused::because("messageId is empty"));
    }
    let mut emojis = match fields.any(&["emojis", "emoji"]) {
        None => Vec::new(),
        Some(Value::String(emoji)) => vec![emoji],
        Some(list) => serde_json::from_value(list.clone()).map_err(|_| wrong(&["emojis"], "a list of texts", &list))?,
    };
    // An empty list removes earlier reactions; a list of empty texts must not.
    let count = emojis.len();
    emojis.retain(|emoji| !emoji.trim().is_empty());
    if emojis.is_empty() && count > 0 {
        return Err(Refused::because("emojis is a list of empty texts"));
    }
    fields.0.keys().for_each(|key| parsed.lose(format!("reaction {key}")));
    Ok(Reaction { message_id, emojis })
}

#[cfg(test)]
mod tests {
    use super::super::Ingest;
    use serde_json::json;

    #[test]
    fn only_messages_of_the_sessions_peer_are_accepted() {
        for (with, from, is_accepted) in [
            ("p@x.org", "p@x.org/phone", true),
            ("p@x.org", "P@X.org", true),
            ("p@x.org", "eve@evil.org/x", false),
            ("p@x.org", "p@x.org.evil.org", false),
            ("p@x.org", "", false),
            ("lobby@muc.x.org", "lobby@muc.x.org/alice", true),
            ("lobby@muc.x.org", "den@muc.x.org/alice", false),
        ] {
            let line = json!({"message": {"body": "hi", "from": from}}).to_string();
            let parsed = Ingest::with(with).parse(line.as_bytes());
            assert_eq!(parsed.is_ok(), is_accepted, "{with} {from}: {parsed:?}");
        }
    }
}
