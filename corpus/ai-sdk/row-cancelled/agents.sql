CREATE TABLE agents (
  id TEXT PRIMARY KEY, execution_id TEXT NOT NULL, phase_id TEXT, model TEXT NOT NULL, system_prompt TEXT, prompt TEXT NOT NULL,
  status TEXT NOT NULL, result TEXT, result_structured TEXT, log_path TEXT, error TEXT, started_at TEXT, completed_at TEXT,
  created_at TEXT NOT NULL, duration_ms INTEGER, tokens_input INTEGER, tokens_output INTEGER, tool_calls_count INTEGER DEFAULT 0
);
INSERT INTO agents (id, execution_id, model, prompt, status, created_at) VALUES ('agent-1', 'run-1', 'sonnet', 'Fix the lamp.', 'cancelled', '2026-11-01 10:00:00');
