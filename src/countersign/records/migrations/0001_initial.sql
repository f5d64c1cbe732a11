-- The engine's own tables. Those of models are made from their declarations (records/schema).

-- Counted up by every change of users, roles, grants, sessions, agent tokens and settings.
CREATE TABLE version (name TEXT PRIMARY KEY, number BIGINT NOT NULL) WITHOUT ROWID;
INSERT INTO version (name, number) VALUES ('access', 0);

-- 32 random bytes from which this database's keys derive, sealed under the master key.
CREATE TABLE service_key (name TEXT PRIMARY KEY, sealed BLOB NOT NULL);

-- What is installed of each module, as the schema code wrote it down after its last step.
CREATE TABLE module_state (
    module TEXT PRIMARY KEY,
    version TEXT NOT NULL,
    snapshot TEXT NOT NULL
);

-- Sessions, agent tokens and set-up links by the SHA-256 of their secret; never the secret.
CREATE TABLE credential (
    digest BLOB PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('session', 'agent', 'setup')),
    record_id TEXT NOT NULL,
    user_id TEXT,
    expires_at BIGINT NOT NULL,
    ended_at BIGINT
);
CREATE INDEX credential_by_record ON credential (record_id);

CREATE TABLE password (user_id TEXT PRIMARY KEY, hash TEXT NOT NULL);

-- Failed sign-ins by case-folded user name, whether or not there is such a user (as a keyed hash).
CREATE TABLE sign_in_failure (username BLOB NOT NULL, at BIGINT NOT NULL);
CREATE INDEX sign_in_failure_by_username ON sign_in_failure (username, at);
CREATE INDEX sign_in_failure_by_moment ON sign_in_failure (at);

-- Where placeholder tokens mean something: a person's agents of one label, or (label '') the person.
CREATE TABLE token_domain (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    label TEXT NOT NULL,
    salt BLOB NOT NULL,
    opened_at BIGINT NOT NULL,
    closed_at BIGINT
);
CREATE INDEX token_domain_by_person ON token_domain (user_id, label);

-- The vault: one row for each distinct (label, value) of linked labels (hash is keyed), one for each record and field
-- of the others (hash is null). `key` seals copies in audit and plans; at refs 0 the row goes, and they with it.
CREATE TABLE pii_value (
    id BIGINT PRIMARY KEY,
    label TEXT NOT NULL,
    hash BLOB UNIQUE,
    key BLOB NOT NULL,
    refs BIGINT NOT NULL,
    domain_id TEXT
);

-- Where a masked caller wrote a value in clear: its domain's tokens use a value id of their own.
CREATE TABLE pii_alias (
    model TEXT NOT NULL,
    record_id TEXT NOT NULL,
    field TEXT NOT NULL,
    domain_id TEXT NOT NULL,
    value_id BIGINT NOT NULL,
    PRIMARY KEY (model, record_id, field, domain_id)
);
CREATE INDEX pii_alias_by_value ON pii_alias (value_id);
CREATE INDEX pii_alias_by_domain ON pii_alias (domain_id);

-- Clear text that looks like a token, so that it can be sent as one.
CREATE TABLE literal (text TEXT PRIMARY KEY, value_id BIGINT NOT NULL UNIQUE);

-- Which fields each change of a record touched, as a bit mask: a caller's revision counts those it can see.
CREATE TABLE record_change (
    model TEXT NOT NULL,
    record_id TEXT NOT NULL,
    revision BIGINT NOT NULL,
    fields BIGINT NOT NULL,
    PRIMARY KEY (model, record_id, revision)
) WITHOUT ROWID;

-- The heads of the audit's chains.
CREATE TABLE audit_lane (lane BIGINT PRIMARY KEY, count BIGINT NOT NULL, hash BLOB NOT NULL, mac BLOB NOT NULL);

-- Numbers without gaps: the row is locked until whoever took one has committed.
CREATE TABLE sequence (name TEXT PRIMARY KEY, next BIGINT NOT NULL);

-- The steps of a plan, for deciding who may see it, and what each reads, for deciding whether it is stale.
CREATE TABLE plan_step (
    plan_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    command TEXT NOT NULL,
    model TEXT NOT NULL,
    record_id TEXT,
    PRIMARY KEY (plan_id, position)
);

-- What a plan keeps of personal values: they stay in the vault while it is pending.
CREATE TABLE plan_value (
    plan_id TEXT NOT NULL,
    value_id BIGINT NOT NULL,
    sealed TEXT NOT NULL,
    PRIMARY KEY (plan_id, value_id)
);
CREATE INDEX plan_value_by_value ON plan_value (value_id);

-- The newest plan of each agent and input, so that a repeated proposal finds the one that is pending.
CREATE TABLE plan_key (same BLOB PRIMARY KEY, plan_id TEXT NOT NULL);

-- Who has approved a plan that needs several.
CREATE TABLE plan_approval (
    plan_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    note TEXT,
    PRIMARY KEY (plan_id, user_id)
);
