//! A session as one HTML file: no script, no request, readable in ten years.

use std::cell::RefCell;
use std::io::Write;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use scrollback::session::RecordRef;
use scrollback::view::{Conversation, listing};

use super::{Document, Error, facts};
use crate::render::icon::{agent_mark, whole_sprite};
use crate::render::{Folds, Look, Medium, Room, text, words};
use crate::site::only_model;
use crate::style::{STYLE, STYLE_HASH};
use crate::transcript::{Transcript, is_room};

/// Writes the session as a page that needs nothing else.
pub fn write(document: &Document<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let mut row = document.session.row()?;
    if let Some(summary) = listing::summary_elsewhere(document.session) {
        row.title = summary;
    }
    let title = text::brief(&row.title, 300);
    out.write_all(start(&title).0.as_bytes())?;
    let head = html! {
        header {
            div.head-title { h1.page-title dir="auto" { (title) } }
            dl.facts {
                @for (name, fact) in facts(&row, document.zone) {
                    div { dt { (name) } dd dir="auto" { @if name == "Agent" { span.agent { (agent_mark(&row.dialect)) (fact) } } @else { (text::brief(&fact, 300)) } } }
                }
            }
        }
    };
    out.write_all(head.0.as_bytes())?;
    let room = Room::of_file();
    for (at, head) in document.heads.iter().enumerate() {
        if document.heads.len() > 1 {
            let name = if at == 0 { "The newest branch" } else { "Another branch" };
            let short = text::short_id(&head.id());
            out.write_all(
                html! { h2.h-section id={ "b-" (text::anchor(&head.id())) } { (name) ", up to " code { (short) } } }
                    .0
                    .as_bytes(),
            )?;
        }
        branch(document, *head, &room, out)?;
    }
    out.write_all(end(document).0.as_bytes())?;
    Ok(())
}

fn branch(document: &Document<'_>, head: RecordRef<'_>, room: &Room, out: &mut dyn Write) -> Result<(), Error> {
    let branch = document.session.branch(head);
    let conversation = Conversation::new(&branch);
    let range = 0..conversation.len();
    let transcript = Transcript::new(document.session, &branch, &conversation, range.clone(), document.sub_agents)?;
    let look = Look {
        medium: Medium::File,
        zone: document.zone,
        dialect: document.session.dialect().name(),
        folds: Folds::default(),
        is_room: is_room(&conversation),
        level: 2,
        cwd: RefCell::new(None),
        model: only_model(document.session),
        price: document.price,
        room,
        is_running: false,
        sub_agent: None,
    };
    out.write_all(if look.is_room { b"<div class=\"room\">" } else { b"<div>" })?;
    for at in range {
        room.write(&transcript.message(at, &look)?.0, out)?;
        out.write_all(b"\n")?;
    }
    room.write(&transcript.end(conversation.len(), &look).0, out)?;
    out.write_all(b"</div>")?;
    Ok(())
}

fn start(title: &str) -> Markup {
    let policy =
        format!("default-src 'none'; style-src {}; img-src data:; base-uri 'none'; form-action 'none'", &*STYLE_HASH);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLE.as_str())) }
            }
            body.export { (whole_sprite()) main.page id="main" { (PreEscaped("\u{0}")) } }
        }
    };
    // What follows is written message by message.
    PreEscaped(page.0.split('\u{0}').next().unwrap_or_default().to_owned())
}

fn end(document: &Document<'_>) -> Markup {
    let when = words::day_and_time(document.now, document.zone);
    PreEscaped(format!(
        "</main>{}</body></html>\n",
        html! { footer.foot { div.foot-in { span { "Exported " (when) } span { "scrollback " (env!("CARGO_PKG_VERSION")) } } } }.0
    ))
}
