-- Agents: who registered, whose they became, and what ends a token before its time.

-- Addresses a client's person may be sent back to, as a JSON list; `implicit` allows response_type=token.
ALTER TABLE oauth_client ADD COLUMN redirect_uris TEXT NOT NULL DEFAULT '[]';
ALTER TABLE oauth_client ADD COLUMN implicit BIGINT NOT NULL DEFAULT 0;

-- A link that was mailed to prove an address. Only the hash of its token is kept.
CREATE TABLE email_proof (
    token_hash BLOB PRIMARY KEY,
    email TEXT NOT NULL,
    return_to TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT
);
CREATE INDEX email_proof_by_email ON email_proof (email);
CREATE INDEX email_proof_by_expiry ON email_proof (expires_at);

-- Identity providers whose assertions are believed; lists are JSON.
CREATE TABLE trusted_issuer (
    issuer TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    jwks_uri TEXT NOT NULL,
    algorithms TEXT NOT NULL,
    client_ids TEXT NOT NULL,
    domains TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Single-use tokens of others (ID-JAGs, security events) that were used, until they expire by themselves.
CREATE TABLE seen_token (
    kind TEXT NOT NULL CHECK (kind IN ('id-jag', 'event')),
    issuer TEXT NOT NULL,
    jti_hash BLOB NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (kind, issuer, jti_hash)
);
CREATE INDEX seen_token_by_expiry ON seen_token (expires_at);

-- Which person a provider's subject is: made once, by a claim or for a new account.
CREATE TABLE delegation (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    person_id TEXT NOT NULL REFERENCES person (id),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX delegation_by_person ON delegation (person_id);

-- An agent. `generation` rises with a claim and with the end; tokens and assertions of an older one are dead.
-- `scopes` are those asked for until the claim, those granted after it.
CREATE TABLE registration (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('anonymous', 'service_auth', 'identity_assertion')),
    status TEXT NOT NULL CHECK (status IN ('unclaimed', 'claimed', 'denied', 'revoked')),
    generation BIGINT NOT NULL,
    person_id TEXT REFERENCES person (id),
    email TEXT,
    issuer TEXT,
    subject TEXT,
    client_id TEXT,
    scopes TEXT NOT NULL,
    agent TEXT NOT NULL,
    address TEXT NOT NULL,
    claim_hash BLOB UNIQUE,
    claim_expires_at BIGINT,
    interval_s BIGINT NOT NULL,
    polled_at BIGINT,
    created_at BIGINT NOT NULL,
    claimed_at BIGINT,
    used_at BIGINT
);
CREATE INDEX registration_by_person ON registration (person_id, created_at, id);
CREATE INDEX registration_by_subject ON registration (issuer, subject);
CREATE INDEX registration_by_claim_expiry ON registration (claim_expires_at);

-- One try of the claim ceremony. `typed_hash` leads to the page that asks for the code the agent shows,
-- `shown_hash` to the page that shows a code for the agent; codes are kept as MACs under the master key.
CREATE TABLE claim_attempt (
    id TEXT PRIMARY KEY,
    registration_id TEXT NOT NULL REFERENCES registration (id),
    status TEXT NOT NULL CHECK (status IN ('open', 'confirmed', 'claimed', 'declined', 'ended')),
    typed_hash BLOB NOT NULL UNIQUE,
    shown_hash BLOB NOT NULL UNIQUE,
    typed_code BLOB NOT NULL,
    shown_code BLOB,
    confirmed_by TEXT REFERENCES person (id),
    tries BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX claim_attempt_by_registration ON claim_attempt (registration_id, created_at);

-- What a person allowed an OAuth client; `generation` rises when it is taken back.
CREATE TABLE consent (
    id TEXT PRIMARY KEY,
    person_id TEXT NOT NULL REFERENCES person (id),
    client_id TEXT NOT NULL,
    scopes TEXT NOT NULL,
    generation BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT,
    UNIQUE (person_id, client_id)
);

CREATE TABLE authorization_code (
    code_hash BLOB PRIMARY KEY,
    client_id TEXT NOT NULL,
    consent_id TEXT NOT NULL REFERENCES consent (id),
    redirect_uri TEXT NOT NULL,
    challenge TEXT NOT NULL,
    scopes TEXT NOT NULL,
    token_jti TEXT NOT NULL,
    auth_time BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT
);
CREATE INDEX authorization_code_by_expiry ON authorization_code (expires_at);

-- Access tokens that ended before their time, until they would have.
CREATE TABLE revoked_token (
    jti TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE INDEX revoked_token_by_expiry ON revoked_token (expires_at);
