//! Sessions of Claude Code: `.claude/projects/<directory>/<session id>.jsonl`.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Counts, Log, Maker, NEEDLE, Project, timestamp};

const MODELS: [&str; 3] = ["claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"];
const TOOLS: [&str; 5] = ["Read", "Bash", "Grep", "Edit", "WebFetch"];

/// A written session, and where each of its turns ends.
pub(super) struct Finished {
    path: PathBuf,
    id: String,
    project: Project,
    turns: Vec<Turn>,
}

struct Turn {
    end: usize,
    last: String,
    ms: u64,
}

impl Finished {
    pub(super) fn has_two_turns(&self) -> bool {
        self.turns.len() > 1
    }
}

/// Writes a session of about this size, and sometimes one of a sub-agent.
pub(super) fn write(maker: &mut Maker, counts: &mut Counts, bytes: usize, needle: bool) -> io::Result<Finished> {
    let (project, id) = (maker.project(), maker.text.uuid());
    let ms = maker.start_ms();
    let mut writer = Writer::create(maker, counts, project, id, ms)?;
    writer.counts.sessions += 1;
    writer.limit = bytes;
    if writer.maker.text.random.percent(30) {
        let summary =
            json!({"type": "summary", "summary": writer.maker.text.words(5), "leafUuid": writer.maker.text.uuid()});
        writer.log.line(&summary)?;
    }
    let mut turns = Vec::new();
    let mut words = if needle { NEEDLE } else { "" };
    loop {
        writer.turn(words)?;
        words = "";
        let last = writer.last.clone().unwrap_or_default();
        turns.push(Turn { end: writer.log.bytes, last, ms: writer.ms });
        if writer.log.bytes >= bytes {
            break;
        }
        // Every now and then the conversation goes back and takes another way.
        let back = writer.maker.text.random.percent(5).then(|| turns[turns.len() / 2].last.clone());
        writer.last = back.or(writer.last);
    }
    if writer.maker.text.random.percent(10) {
        writer.sub_agent()?;
    }
    if writer.maker.text.random.percent(5) {
        let torn = writer.torn();
        writer.log.raw(&torn)?;
    }
    let (project, id) = (writer.project.clone(), writer.id.clone());
    let path = writer.log.finish(writer.maker)?;
    Ok(Finished { path, id, project, turns })
}

/// A session that starts as a copy of the first half of another one.
pub(super) fn fork(maker: &mut Maker, counts: &mut Counts, of: &Finished) -> io::Result<()> {
    copy(maker, counts, of, &of.turns[of.turns.len() / 2])
}

/// A session that starts as a whole copy of another one, as older versions resume.
pub(super) fn resume(maker: &mut Maker, counts: &mut Counts, of: &Finished) -> io::Result<()> {
    copy(maker, counts, of, &of.turns[of.turns.len() - 1])
}

fn copy(maker: &mut Maker, counts: &mut Counts, of: &Finished, until: &Turn) -> io::Result<()> {
    let text = fs::read_to_string(&of.path)?;
    let id = maker.text.uuid();
    let copied = text[..until.end].replace(&of.id, &id);
    let mut writer = Writer::create(maker, counts, of.project.clone(), id, until.ms + 3_600_000)?;
    writer.counts.sessions += 1;
    writer.log.raw(&copied)?;
    writer.last = Some(until.last.clone());
    writer.turn("")?;
    writer.log.finish(writer.maker)?;
    Ok(())
}

struct Writer<'m> {
    maker: &'m mut Maker,
    counts: &'m mut Counts,
    log: Log,
    project: Project,
    id: String,
    /// The sub-agent whose session this is.
    agent: Option<String>,
    is_sidechain: bool,
    last: Option<String>,
    ms: u64,
    /// A turn ends early at this size.
    limit: usize,
}

impl<'m> Writer<'m> {
    fn create(
        maker: &'m mut Maker,
        counts: &'m mut Counts,
        project: Project,
        id: String,
        ms: u64,
    ) -> io::Result<Writer<'m>> {
        let folder = maker.home.join(".claude/projects").join(project.cwd.replace(['/', '.', '_'], "-"));
        let log = Log::create(folder.join(format!("{id}.jsonl")))?;
        Ok(Writer {
            maker,
            counts,
            log,
            project,
            id,
            agent: None,
            is_sidechain: false,
            last: None,
            ms,
            limit: usize::MAX,
        })
    }

    /// A prompt, some answers with calls, the last answer.
    fn turn(&mut self, words: &str) -> io::Result<()> {
        // A line that was torn by a crash, and the next one right behind it or on its own line.
        if self.last.is_some() && self.maker.text.random.percent(2) {
            let end = if self.maker.text.random.percent(50) { "\n" } else { "" };
            let torn = self.torn() + end;
            self.log.raw(&torn)?;
        }
        self.prompt(words)?;
        self.snapshot()?;
        for _ in 0..self.maker.text.random.below(8) {
            if self.log.bytes >= self.limit {
                break;
            }
            if self.maker.text.random.percent(3) && !self.is_sidechain {
                self.sidechain()?;
            }
            self.answer(false)?;
        }
        self.answer(true)?;
        match self.maker.text.random.below(20) {
            0..6 => self.system(json!({"subtype": "turn_duration", "durationMs": 4_200, "isMeta": false})),
            6 => {
                let metadata = json!({"trigger": "auto", "preTokens": 155_000});
                self.system(json!({"subtype": "compact_boundary", "content": "Conversation compacted", "compactMetadata": metadata}))
            }
            _ => Ok(()),
        }
    }

    /// The fields that every record has; the record becomes the parent of the next one.
    fn record(&mut self, kind: &str) -> Value {
        self.ms += self.maker.text.random.between(200, 9_000);
        let uuid = self.maker.text.uuid();
        let mut record = json!({
            "parentUuid": self.last, "isSidechain": self.is_sidechain, "userType": "external", "cwd": self.project.cwd,
            "sessionId": self.id, "version": "2.1.41", "gitBranch": self.project.branch, "type": kind, "uuid": uuid,
            "timestamp": timestamp(self.ms),
        });
        if let Some(agent) = &self.agent {
            record["agentId"] = agent.as_str().into();
        }
        self.last = Some(uuid);
        record
    }

    fn prompt(&mut self, words: &str) -> io::Result<()> {
        let mut record = self.record("user");
        let text = &mut self.maker.text;
        let bytes = text.random.log_uniform(30, 3_000);
        let prompt = format!("{} {words}", text.prose(bytes));
        record["message"] = if text.random.percent(2) {
            let picture = json!({"type": "base64", "media_type": "image/png", "data": text.base64(40_000)});
            json!({"role": "user", "content": [{"type": "text", "text": prompt}, {"type": "image", "source": picture}]})
        } else {
            json!({"role": "user", "content": prompt})
        };
        self.counts.messages += 1;
        self.log.line(&record)
    }

    /// One request: a line for each block of its answer, each with the usage so far, then the results of its calls.
    fn answer(&mut self, is_last: bool) -> io::Result<()> {
        let text = &mut self.maker.text;
        let (message, request) = (text.name("msg_01"), text.name("req_01"));
        let model = text.random.pick(&MODELS);
        let mut blocks = Vec::new();
        if text.random.percent(35) {
            let thinking = text.random.log_uniform(100, 2_000);
            blocks.push(json!({"type": "thinking", "thinking": text.prose(thinking), "signature": text.base64(300)}));
        }
        if is_last || text.random.percent(45) {
            let bytes = text.random.log_uniform(60, 4_000);
            blocks.push(json!({"type": "text", "text": text.prose(bytes)}));
        }
        let mut calls = Vec::new();
        for _ in 0..if is_last { 0 } else { text.random.log_uniform(1, 3) } {
            let (id, tool) = (text.name("toolu_01"), text.random.pick(&TOOLS));
            let path = format!("{}/src/{}.rs", self.project.cwd, text.identifier());
            let input = match tool {
                "Bash" => json!({"command": text.words(6), "description": text.words(5)}),
                "Edit" => json!({"file_path": path, "old_string": text.code(200), "new_string": text.code(300)}),
                "Grep" => json!({"pattern": text.identifier(), "path": "src"}),
                "WebFetch" => json!({"url": "https://docs.example.com/", "prompt": text.words(5)}),
                _ => json!({"file_path": path}),
            };
            blocks.push(json!({"type": "tool_use", "id": id, "name": tool, "input": input}));
            calls.push((id, tool, input));
        }
        let tokens @ [input, output, read, written, _] = [
            text.random.between(3, 900),
            text.random.between(40, 1_800),
            text.random.below(120_000),
            text.random.below(9_000),
            0,
        ];
        // Some versions write the first blocks before the whole output is counted.
        let early = if text.random.percent(15) { 1 } else { output };
        self.counts.messages += 1;
        self.counts.tool_calls += calls.len() as u64;
        let count = blocks.len();
        for (at, block) in blocks.into_iter().enumerate() {
            let is_end = at + 1 == count;
            let stop = is_end.then_some(if is_last { "end_turn" } else { "tool_use" });
            let usage = json!({
                "input_tokens": input, "cache_creation_input_tokens": written, "cache_read_input_tokens": read,
                "output_tokens": if is_end { output } else { early }, "service_tier": "standard",
            });
            let mut record = self.record("assistant");
            if at == 0 {
                self.counts.add_request(tokens, self.ms, model);
            }
            record["message"] = json!({
                "model": model, "id": message, "type": "message", "role": "assistant", "content": [block], "stop_reason": stop,
                "stop_sequence": null, "usage": usage,
            });
            record["requestId"] = request.as_str().into();
            self.log.line(&record)?;
        }
        calls.into_iter().try_for_each(|(id, tool, input)| self.result(&id, tool, &input))
    }

    fn result(&mut self, id: &str, tool: &str, input: &Value) -> io::Result<()> {
        if tool == "Bash" && self.maker.text.random.percent(30) {
            let progress = self.progress();
            self.log.line(&progress)?;
        }
        let mut record = self.record("user");
        let output = self.maker.text.output();
        let mut block = json!({"tool_use_id": id, "type": "tool_result", "content": output});
        if self.maker.text.random.percent(20) {
            block["content"] = json!([{"type": "text", "text": output}]);
        }
        let failed = self.maker.text.random.percent(5);
        if failed {
            block["is_error"] = true.into();
        }
        record["message"] = json!({"role": "user", "content": [block]});
        record["toolUseResult"] = match tool {
            _ if failed => json!(format!("Error: {}", self.maker.text.words(6))),
            "Bash" => json!({"stdout": output, "stderr": "", "interrupted": false, "isImage": false}),
            "Read" => {
                json!({"type": "text", "file": {"filePath": input["file_path"], "content": output, "startLine": 1}})
            }
            "Edit" => {
                json!({"filePath": input["file_path"], "oldString": input["old_string"], "newString": input["new_string"], "originalFile": output})
            }
            _ => json!({"mode": "content", "content": output}),
        };
        self.log.line(&record)
    }

    fn progress(&mut self) -> Value {
        let mut record = self.record("progress");
        record["data"] = json!({"type": "bash_progress", "output": self.maker.text.words(12), "elapsedTimeSeconds": 1});
        record
    }

    fn system(&mut self, fields: Value) -> io::Result<()> {
        let mut record = self.record("system");
        if let Value::Object(fields) = fields {
            fields.into_iter().for_each(|(name, value)| record[name] = value);
        }
        self.log.line(&record)
    }

    fn snapshot(&mut self) -> io::Result<()> {
        let snapshot = json!({"messageId": self.last, "trackedFileBackups": {}, "timestamp": timestamp(self.ms)});
        let line = json!({"type": "file-history-snapshot", "messageId": self.last, "snapshot": snapshot, "isSnapshotUpdate": false});
        self.log.line(&line)
    }

    /// A sub-agent's work in the same file.
    fn sidechain(&mut self) -> io::Result<()> {
        let last = self.last.take();
        self.is_sidechain = true;
        self.prompt("")?;
        self.answer(false)?;
        self.answer(true)?;
        self.is_sidechain = false;
        self.last = last;
        Ok(())
    }

    /// A sub-agent's work in a file of its own: beside the session, or in its folder as newer versions do.
    fn sub_agent(&mut self) -> io::Result<()> {
        let agent = format!("{:07x}", self.maker.text.random.below(1 << 28));
        let folder = self.log.path.with_extension("");
        let folder =
            if self.maker.text.random.percent(50) { folder.join("subagents") } else { folder.with_file_name("") };
        let log = Log::create(folder.join(format!("agent-{agent}.jsonl")))?;
        self.counts.child_sessions += 1;
        let (project, id, ms) = (self.project.clone(), self.id.clone(), self.ms);
        let (maker, counts) = (&mut *self.maker, &mut *self.counts);
        let mut writer = Writer {
            maker,
            counts,
            log,
            project,
            id,
            agent: Some(agent),
            is_sidechain: true,
            last: None,
            ms,
            limit: usize::MAX,
        };
        writer.turn("")?;
        writer.log.finish(writer.maker)?;
        Ok(())
    }

    /// The beginning of a line that nobody finished. Nothing in it counts.
    fn torn(&mut self) -> String {
        let last = self.last.clone();
        let mut line = self.progress().to_string();
        self.last = last;
        line.truncate(line.len() - 40);
        line
    }
}
