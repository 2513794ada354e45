//! Sessions of Codex: `.codex/sessions/<year>/<month>/<day>/rollout-<time>-<session id>.jsonl`.

use std::io;

use serde_json::{Value, json};

use super::{Counts, Log, Maker, timestamp};

/// Input with what a cache held, of it from a cache, output, of it reasoning.
type Tokens = [u64; 4];

const MODEL: &str = "gpt-5-codex";

/// Writes a session of about this size.
pub(super) fn write(maker: &mut Maker, counts: &mut Counts, bytes: usize) -> io::Result<()> {
    let ms = maker.start_ms();
    let (id, time) = (maker.text.uuid(), timestamp(ms));
    let (day, clock) = time.split_at(10);
    let name = format!("rollout-{day}T{}-{id}.jsonl", clock[1..9].replace(':', "-"));
    let log = Log::create(maker.home.join(".codex/sessions").join(day.replace('-', "/")).join(name))?;
    let project = maker.project();
    let mut writer = Writer { maker, counts, log, ms, total: [0; 4] };
    writer.counts.sessions += 1;
    writer.line(
        "session_meta",
        json!({
            "id": id, "timestamp": time, "cwd": project.cwd, "originator": "codex_cli_rs", "cli_version": "0.58.0",
            "instructions": null, "source": "cli", "model_provider": "openai", "git": {"branch": project.branch},
        }),
    )?;
    loop {
        writer.turn(&project.cwd, bytes)?;
        if writer.log.bytes >= bytes {
            break;
        }
    }
    writer.log.finish(writer.maker)?;
    Ok(())
}

struct Writer<'m> {
    maker: &'m mut Maker,
    counts: &'m mut Counts,
    log: Log,
    ms: u64,
    total: Tokens,
}

impl Writer<'_> {
    fn line(&mut self, kind: &str, payload: Value) -> io::Result<()> {
        self.ms += self.maker.text.random.between(100, 6_000);
        self.log.line(&json!({"timestamp": timestamp(self.ms), "type": kind, "payload": payload}))
    }

    fn message(&mut self, role: &str, kind: &str, text: &str) -> io::Result<()> {
        let content = json!([{"type": kind, "text": text}]);
        self.line("response_item", json!({"type": "message", "role": role, "content": content}))
    }

    /// A turn; it ends early if the file has this size.
    fn turn(&mut self, cwd: &str, limit: usize) -> io::Result<()> {
        let bytes = self.maker.text.random.log_uniform(30, 3_000);
        let prompt = self.maker.text.prose(bytes);
        self.counts.messages += 1;
        self.message("user", "input_text", &prompt)?;
        self.line("event_msg", json!({"type": "user_message", "message": prompt, "kind": "plain"}))?;
        self.line("turn_context", json!({"cwd": cwd, "approval_policy": "on-request", "model": MODEL}))?;
        for _ in 0..self.maker.text.random.between(1, 8) {
            self.call(cwd)?;
            self.usage()?;
            if self.log.bytes >= limit {
                break;
            }
        }
        let bytes = self.maker.text.random.log_uniform(60, 3_000);
        let answer = self.maker.text.prose(bytes);
        self.line("event_msg", json!({"type": "agent_message", "message": answer}))?;
        self.message("assistant", "output_text", &answer)?;
        self.usage()
    }

    fn call(&mut self, cwd: &str) -> io::Result<()> {
        let text = &mut self.maker.text;
        let summary = json!([{"type": "summary_text", "text": text.words(4)}]);
        let reasoning = json!({"type": "reasoning", "summary": summary, "encrypted_content": text.base64(900)});
        let (id, output) = (text.name("call_"), text.output());
        let arguments = json!({"command": ["bash", "-lc", text.words(6)], "workdir": cwd}).to_string();
        self.line("response_item", reasoning)?;
        self.line(
            "response_item",
            json!({"type": "function_call", "name": "shell", "arguments": arguments, "call_id": id}),
        )?;
        let output = json!({"output": output, "metadata": {"exit_code": 0, "duration_seconds": 0.3}}).to_string();
        self.counts.tool_calls += 1;
        self.line("response_item", json!({"type": "function_call_output", "call_id": id, "output": output}))
    }

    /// What a request cost, and all requests so far; sometimes twice, sometimes without numbers in between.
    fn usage(&mut self) -> io::Result<()> {
        let random = &mut self.maker.text.random;
        let (input, output) = (random.between(500, 60_000), random.between(30, 900));
        let last = [input, random.below(input), output, random.below(output)];
        let (is_repeated, is_empty) = (random.percent(10), random.percent(5));
        self.total.iter_mut().zip(last).for_each(|(sum, count)| *sum += count);
        let [input, cached, output, reasoning] = last;
        self.counts.messages += 1;
        let info = json!({"total_token_usage": tokens(self.total), "last_token_usage": tokens(last), "model_context_window": 272_000});
        let count = |info: &Value| json!({"type": "token_count", "info": info, "rate_limits": null});
        if is_empty {
            self.line("event_msg", count(&Value::Null))?;
        }
        self.line("event_msg", count(&info))?;
        self.counts.add_request([input - cached, output, cached, 0, reasoning], self.ms, MODEL);
        if is_repeated {
            self.line("event_msg", count(&info))?;
        }
        Ok(())
    }
}

fn tokens([input, cached, output, reasoning]: Tokens) -> Value {
    json!({
        "input_tokens": input, "cached_input_tokens": cached, "output_tokens": output, "reasoning_output_tokens": reasoning,
        "total_tokens": input + output,
    })
}
