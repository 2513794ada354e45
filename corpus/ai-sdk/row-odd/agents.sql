CREATE TABLE agents (
  id TEXT PRIMARY KEY, execution_id TEXT NOT NULL, phase_id TEXT, model TEXT NOT NULL, system_prompt TEXT, prompt TEXT NOT NULL,
  status TEXT NOT NULL, result TEXT, result_structured TEXT, log_path TEXT, error TEXT, started_at TEXT, completed_at TEXT,
  created_at TEXT NOT NULL, duration_ms INTEGER, tokens_input INTEGER, tokens_output INTEGER, tool_calls_count INTEGER DEFAULT 0
);
ALTER TABLE agents ADD COLUMN scope_rev TEXT;
INSERT INTO agents (id, execution_id, model, prompt, status, result, result_structured, created_at, scope_rev) VALUES ('agent-1', 7, 'sonnet', 'Go.', 'resting', x'ff41', '{torn', 1761991200, 'r9');
