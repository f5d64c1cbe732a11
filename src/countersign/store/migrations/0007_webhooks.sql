-- Webhooks: who wants to hear of events, what happened, and what became of telling it.

-- `owner` is the organisation. `types` is ' one two ', or '*' for all. `secrets` is sealed: the present one, and others
-- that still sign for a while. Whoever knows `lease` sends to this receiver until `lease_until`; after a failure nothing
-- is sent to it before `rest_until`, and `failures` counts those since its last success.
CREATE TABLE webhook (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    url TEXT NOT NULL,
    types TEXT NOT NULL,
    secrets BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    lease TEXT NOT NULL,
    lease_until BIGINT NOT NULL,
    rest_until BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    delivered_at BIGINT
);
CREATE INDEX webhook_by_owner ON webhook (owner, created_at, id);

-- Written in the transaction of what it tells of. Nothing of the thing is in here but its type and its id.
CREATE TABLE webhook_event (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    type TEXT NOT NULL,
    subject TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX webhook_event_by_owner ON webhook_event (owner, at, id);
CREATE INDEX webhook_event_by_age ON webhook_event (at);

-- One event on its way to one receiver. `queued_at` is when it was last put on its way: first, or by a replay. `answer`
-- is the status of the receiver's last answer, and `fault` says in our words why there was none.
CREATE TABLE webhook_delivery (
    webhook_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'given_up')),
    attempts BIGINT NOT NULL,
    queued_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    ended_at BIGINT,
    answer BIGINT,
    fault TEXT,
    PRIMARY KEY (webhook_id, event_id)
);
CREATE INDEX webhook_delivery_due ON webhook_delivery (webhook_id, due_at, event_id) WHERE state = 'waiting';
CREATE INDEX webhook_delivery_by_event ON webhook_delivery (event_id);
CREATE INDEX webhook_delivery_by_end ON webhook_delivery (ended_at);
CREATE INDEX webhook_delivery_old ON webhook_delivery (queued_at) WHERE state = 'waiting';
