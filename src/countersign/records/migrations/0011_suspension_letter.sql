-- The hidden models of connected tables that administrators get e-mails about, and the e-mails that wait.
CREATE TABLE suspended_model (
    model TEXT PRIMARY KEY,
    noted_at BIGINT NOT NULL
);
CREATE TABLE suspension_letter (
    user_id TEXT PRIMARY KEY,
    since BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    lease TEXT NOT NULL,
    lease_until BIGINT NOT NULL
);
CREATE INDEX suspension_letter_by_turn ON suspension_letter (due_at);
