-- The people whom comments mention. `seen_at` is when the person has opened the record since. `author_id` is the person
-- who wrote the comment, or for whom an agent wrote it.
CREATE TABLE comment_mention (
    comment_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    author_id TEXT NOT NULL,
    model TEXT NOT NULL,
    record_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    seen_at BIGINT,
    PRIMARY KEY (comment_id, user_id)
);
CREATE INDEX comment_mention_by_person ON comment_mention (user_id, at);
CREATE INDEX comment_mention_by_record ON comment_mention (user_id, model, record_id);
CREATE INDEX comment_mention_by_author ON comment_mention (author_id, at);

-- The e-mails about mentions that wait, at most one for each person.
CREATE TABLE mention_letter (
    user_id TEXT PRIMARY KEY,
    since BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    lease TEXT NOT NULL,
    lease_until BIGINT NOT NULL
);
CREATE INDEX mention_letter_by_turn ON mention_letter (due_at);
