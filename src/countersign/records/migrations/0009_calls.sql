-- Calls of agents, kept for seven days: what was called on which record, and how it ended; never the content.
CREATE TABLE agent_call (
    number BIGINT PRIMARY KEY,
    token_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    tool TEXT NOT NULL,
    record_id TEXT,
    result TEXT NOT NULL,
    elapsed_us BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX agent_call_by_token ON agent_call (token_id, number);
CREATE INDEX agent_call_by_moment ON agent_call (at);

-- The records that a person opened last.
CREATE TABLE recent_record (
    user_id TEXT NOT NULL,
    model TEXT NOT NULL,
    record_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (user_id, model, record_id)
) WITHOUT ROWID;
CREATE INDEX recent_record_by_moment ON recent_record (user_id, at);

INSERT INTO version (name, number) VALUES ('calls', 0);
