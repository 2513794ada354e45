//! A message as it came over XMPP: its body, the files that came along, who says it, and what it reacts to.

use serde_json::{Map, Value};

use super::fields::{Fields, wrong};
use super::{Heard, Refused};
use crate::dialect::fluux_room::{Reaction, SharedFile, Speaker, Stanza};
use crate::model::issue::quoted;
use crate::model::record::Body;

/// How services of rooms call their domain, by custom: who says nothing of a room writes from there.
const ROOM_DOMAINS: [&str; 5] = ["muc", "conference", "conf", "rooms", "groupchat"];

/// Fills in who says a message of a chat of two, where the message does not: the one that the session is with. What comes
/// from elsewhere does not belong into the session.
pub(super) fn address(message: &mut Value, with: &str) -> Result<(), Refused> {
    if let Value::String(body) = message {
        *message = Value::Object(Map::from_iter([("body".to_owned(), std::mem::take(body).into())]));
    }
    if let Value::Object(fields) = message {
        let from = fields.entry("from").or_insert_with(|| with.into());
        let bare = |jid: &str| jid.split('/').next().unwrap_or_default().to_lowercase();
        if let Some(from) = from.as_str().filter(|from| bare(from) != bare(with)) {
            return Err(Refused(format!(
                "message: from is {}, and the session is with {}",
                quoted(from),
                quoted(with)
            )));
        }
    }
    Ok(())
}

/// `{body, oob, from, room, id, reaction}`.
pub(super) fn hear(value: Value, heard: &mut Heard) -> Result<(), Refused> {
    let Value::Object(object) = value else { return Err(wrong(&["it"], "an object with a body", &value)) };
    let mut fields = Fields(object);
    let body = fields.text(&["body"])?.unwrap_or_default();
    let from = fields.needed(&["from"])?;
    let room = match (fields.flag(&["room"])?, fields.text(&["type"])?.as_deref()) {
        // It says again what could not be delivered.
        (_, Some("error")) => return Err(Refused::because("its type is error: it came back, and nobody says it")),
        (Some(room), _) => room,
        (None, Some("groupchat")) => true,
        (None, Some("chat")) => false,
        (None, Some(_) | None) => is_room(&from),
    };
    let id = fields.text(&["id"])?;
    let files = fields.any(&["oob"]).map(|oob| files(oob, heard)).transpose()?.unwrap_or_default();
    let reaction = fields.any(&["reaction"]).map(|value| reaction(value, heard)).transpose()?;
    if body.trim().is_empty() && files.is_empty() && reaction.is_none() {
        return Err(Refused::because("nothing is said: body, oob or reaction is missing"));
    }
    fields.0.keys().for_each(|key| heard.lose(key.as_str()));
    let stanza = Stanza { id, from: speaker(from, room)?, body, files, reaction };
    heard.body(Body::User(stanza.content()));
    Ok(())
}

fn speaker(from: String, room: bool) -> Result<Speaker, Refused> {
    let (bare, resource) = from.split_once('/').unwrap_or((&from, ""));
    match room {
        _ if bare.trim().is_empty() => Err(Refused(format!("from is {} and should be a JID", quoted(&from)))),
        // A room speaks itself when it changes its subject or greets: nobody says that.
        true if resource.is_empty() => Err(Refused(format!("from is {} and names nobody in the room", quoted(&from)))),
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

fn files(value: Value, heard: &mut Heard) -> Result<Vec<SharedFile>, Refused> {
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
                fields.0.keys().for_each(|key| heard.lose(format!("oob {key}")));
                SharedFile { url, mime_type, size_bytes }
            }
            other => return Err(wrong(&["oob"], "a list of addresses", &other)),
        };
        if file.url.trim().is_empty() {
            heard.lose("oob without an address");
        } else {
            files.push(file);
        }
    }
    Ok(files)
}

fn reaction(value: Value, heard: &mut Heard) -> Result<Reaction, Refused> {
    let Value::Object(object) = value else { return Err(wrong(&["reaction"], "an object", &value)) };
    let mut fields = Fields(object);
    let message_id = fields.needed(&["messageId", "message_id"])?;
    if message_id.is_empty() {
        return Err(Refused::because("messageId is empty: a reaction is to a message"));
    }
    let mut emojis = match fields.any(&["emojis", "emoji"]) {
        None => Vec::new(),
        Some(Value::String(emoji)) => vec![emoji],
        Some(list) => serde_json::from_value(list.clone()).map_err(|_| wrong(&["emojis"], "a list of texts", &list))?,
    };
    // An empty one is none; of all being empty it must not be made that the person takes back what was there.
    let told = emojis.len();
    emojis.retain(|emoji| !emoji.trim().is_empty());
    if emojis.is_empty() && told > 0 {
        return Err(Refused::because("emojis is a list of empty texts"));
    }
    fields.0.keys().for_each(|key| heard.lose(format!("reaction {key}")));
    Ok(Reaction { message_id, emojis })
}

#[cfg(test)]
mod tests {
    use super::super::Dictation;
    use serde_json::json;

    #[test]
    fn only_who_the_session_is_with_speaks_in_it() {
        for (with, from, is_heard) in [
            ("p@x.org", "p@x.org/phone", true),
            ("p@x.org", "P@X.org", true),
            ("p@x.org", "eve@evil.org/x", false),
            ("p@x.org", "p@x.org.evil.org", false),
            ("p@x.org", "", false),
            ("lobby@muc.x.org", "lobby@muc.x.org/alice", true),
            ("lobby@muc.x.org", "den@muc.x.org/alice", false),
        ] {
            let line = json!({"message": {"body": "hi", "from": from}}).to_string();
            let heard = Dictation::with(with).hear(line.as_bytes());
            assert_eq!(heard.is_ok(), is_heard, "{with} {from}: {heard:?}");
        }
    }
}
