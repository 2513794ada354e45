//! A branch in the order and the time in which it was written: each frame is a message as it was then.

use std::time::Duration;

use hashbrown::HashMap;
use jiff::Timestamp;

use crate::session::Branch;
use crate::view::conversation::Conversation;

/// A longer pause is shortened to this: nobody watches somebody think, or sleep.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// The pause where one of the two times is unknown.
pub const UNKNOWN_PAUSE: Duration = Duration::from_millis(500);

/// What was written within this time of the frame's first record is one frame: the pieces of a text come faster than anybody reads.
const FRAME: Duration = Duration::from_millis(100);

/// A message, as it was after some of its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The position of the message in the conversation.
    pub message: usize,
    /// How many of its records there were: for [`Conversation::message_after`].
    pub records: usize,
    /// When the last of them was written.
    pub at: Option<Timestamp>,
    /// How long nothing happened before it.
    pub pause: Duration,
}

/// The frames of a conversation from one message on, in the order of the branch.
pub fn frames(branch: &Branch<'_>, conversation: &Conversation<'_, '_>, first: usize) -> Vec<Frame> {
    let place: HashMap<usize, usize> =
        branch.records.iter().enumerate().map(|(at, record)| (record.order(), at)).collect();
    let mut written: Vec<(usize, Frame)> = Vec::new();
    for message in first..conversation.len() {
        for (nth, record) in conversation.records(message).enumerate() {
            let at = place.get(&record.order()).copied().unwrap_or_default();
            written.push((at, Frame { message, records: nth + 1, at: record.at(), pause: Duration::ZERO }));
        }
    }
    written.sort_by_key(|(at, _)| *at);
    let mut frames: Vec<Frame> = Vec::new();
    // When the frame that is last so far began.
    let mut began = None;
    for (_, frame) in written {
        match frames.last_mut() {
            Some(last) if last.message == frame.message && is_within(began, frame.at) => {
                (last.records, last.at) = (frame.records, frame.at);
            }
            last => {
                let pause = last.map_or(Duration::ZERO, |last| pause(last.at, frame.at));
                began = frame.at;
                frames.push(Frame { pause, ..frame });
            }
        }
    }
    frames
}

/// The pause between two instants. Clocks go back, too: then there is none.
pub fn pause(from: Option<Timestamp>, to: Option<Timestamp>) -> Duration {
    let (Some(from), Some(to)) = (from, to) else { return UNKNOWN_PAUSE };
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO).min(LONGEST_PAUSE)
}

fn is_within(began: Option<Timestamp>, at: Option<Timestamp>) -> bool {
    matches!((began, at), (Some(began), Some(at)) if at.duration_since(began) <= jiff::SignedDuration::try_from(FRAME).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect;
    use crate::session::{ReadOptions, Session};

    fn frames_of(log: &str) -> Vec<(usize, usize, u128)> {
        let native = dialect::named("native").unwrap();
        let session = Session::from_bytes(
            native,
            log.as_bytes().to_vec(),
            &ReadOptions::plain("2026-11-15T12:00:00Z".parse().unwrap()),
        );
        let branch = session.branch(session.head().unwrap());
        let frames = frames(&branch, &Conversation::new(&branch), 0);
        frames.into_iter().map(|frame| (frame.message, frame.records, frame.pause.as_millis())).collect()
    }

    fn line(kind: &str, id: &str, parent: &str, at: &str, more: &str) -> String {
        let parent = if parent.is_empty() { "null".to_owned() } else { format!("{parent:?}") };
        format!(
            r#"{{"type":"{kind}","uuid":"{id}","parentUuid":{parent},"sessionId":"s","format":2,"timestamp":"2026-11-01T10:00:{at}Z"{more}}}"#
        ) + "\n"
    }

    #[test]
    fn a_frame_has_the_records_of_a_moment_and_a_pause_has_a_limit() {
        let text = |role: &str, text: &str| format!(r#","message":{{"role":"{role}","content":"{text}"}}"#);
        let call = r#","message":{"role":"assistant","content":"I look.","toolCalls":[{"id":"c1","name":"bash","arguments":{}}]}"#;
        let result = r#","toolResults":[{"toolCallId":"c1","toolName":"bash","content":"04:12","success":true}]"#;
        let log = [
            line("user", "u1", "", "00", &text("user", "When?")),
            line("assistant", "a1", "u1", "01.500", call),
            line("tool_result", "r1", "a1", "01.550", result),
            line("assistant", "a2", "r1", "02.000", &text("assistant", "At 04:12.")),
            line("user", "u2", "a2", "59", &text("user", "Thanks.")),
            // A clock that was set back.
            line("assistant", "a3", "u2", "58", &text("assistant", "Welcome.")),
        ];
        assert_eq!(frames_of(&log.concat()), [(0, 1, 0), (1, 2, 1_500), (1, 3, 450), (2, 1, 3_000), (3, 1, 0)]);
    }

    #[test]
    fn what_has_no_time_has_a_pause_all_the_same() {
        let log = "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}\n";
        assert_eq!(frames_of(log), [(0, 1, 0), (1, 1, 500)]);
    }
}
