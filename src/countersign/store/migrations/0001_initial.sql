-- The store's first schema. Moments are microseconds since 1970 in UTC; lists and objects are JSON text.

-- What changed since an answer was made: one counter for the catalog, one for who may do what.
CREATE TABLE version (
    name TEXT PRIMARY KEY,
    number BIGINT NOT NULL
);
INSERT INTO version (name, number) VALUES ('catalog', 1), ('identity', 1);

CREATE TABLE idempotency (
    key_hash BLOB PRIMARY KEY,
    request_hash BLOB NOT NULL,
    status BIGINT NOT NULL,
    headers TEXT NOT NULL,
    body BLOB NOT NULL,
    sealed BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- identity ---------------------------------------------------------------------------------------

-- The service's own keys (token signing, cursor signing), sealed under the master key.
CREATE TABLE service_key (
    name TEXT PRIMARY KEY,
    sealed BLOB NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE organisation (
    id TEXT PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE person (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    password_hash TEXT,
    proven_at BIGINT,
    created_at BIGINT NOT NULL
);

CREATE TABLE membership (
    person_id TEXT NOT NULL REFERENCES person (id),
    org_id TEXT NOT NULL REFERENCES organisation (id),
    role TEXT NOT NULL CHECK (role IN ('owner', 'publisher', 'viewer')),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (person_id, org_id)
);
CREATE INDEX membership_by_org ON membership (org_id, person_id);

CREATE TABLE oauth_client (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organisation (id),
    name TEXT NOT NULL,
    secret_hash BLOB NOT NULL,
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX oauth_client_by_org ON oauth_client (org_id, id);

CREATE TABLE session (
    token_hash BLOB PRIMARY KEY,
    person_id TEXT NOT NULL REFERENCES person (id),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX session_by_expiry ON session (expires_at);

CREATE TABLE setup_link (
    token_hash BLOB PRIMARY KEY,
    created_at BIGINT NOT NULL,
    used_at BIGINT
);

-- publishing -------------------------------------------------------------------------------------

CREATE TABLE product (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organisation (id),
    slug TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    description TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('game', 'app', 'tool')),
    platforms TEXT NOT NULL,
    tags TEXT NOT NULL,
    homepage TEXT,
    license TEXT,
    access TEXT NOT NULL CHECK (access IN ('free', 'entitled')),
    status TEXT NOT NULL CHECK (status IN ('draft', 'public', 'archived')),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX product_by_org ON product (org_id, title, id);

CREATE TABLE release (
    id TEXT PRIMARY KEY,
    product_id TEXT NOT NULL REFERENCES product (id),
    version TEXT NOT NULL,
    sort_key TEXT NOT NULL,
    channel TEXT NOT NULL CHECK (channel IN ('stable', 'beta', 'nightly', 'alpha')),
    notes TEXT,
    status TEXT NOT NULL CHECK (status IN ('draft', 'published', 'yanked')),
    created_at BIGINT NOT NULL,
    published_at BIGINT,
    yank_reason TEXT,
    UNIQUE (product_id, version)
);
CREATE INDEX release_by_newest ON release (product_id, published_at DESC, sort_key DESC, id DESC);

CREATE TABLE media (
    id TEXT PRIMARY KEY,
    product_id TEXT NOT NULL REFERENCES product (id),
    kind TEXT NOT NULL CHECK (kind IN ('icon', 'cover', 'screenshot', 'video')),
    alt TEXT NOT NULL,
    media_type TEXT,
    sha256 TEXT,
    size BIGINT,
    width BIGINT,
    height BIGINT,
    created_at BIGINT NOT NULL
);
CREATE INDEX media_by_product ON media (product_id, created_at, id);
CREATE INDEX media_by_blob ON media (sha256);

-- catalog: what anyone may read, kept beside its sources by the transaction that changes them ------

CREATE TABLE catalog_entry (
    product_id TEXT PRIMARY KEY REFERENCES product (id),
    org_id TEXT NOT NULL,
    org_slug TEXT NOT NULL,
    slug TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    published_at BIGINT NOT NULL,
    card BLOB NOT NULL,
    detail BLOB NOT NULL,
    newest BLOB NOT NULL,
    etag TEXT NOT NULL
);
CREATE INDEX catalog_entry_by_title ON catalog_entry (status, title, product_id);
CREATE INDEX catalog_entry_by_newest ON catalog_entry (status, published_at DESC, product_id DESC);
CREATE INDEX catalog_entry_by_org ON catalog_entry (org_id, title, product_id);

-- One row for each thing a list can be narrowed to: kind:game, platform:linux, org:slug, tag:word.
CREATE TABLE catalog_facet (
    facet TEXT NOT NULL,
    title TEXT NOT NULL,
    product_id TEXT NOT NULL REFERENCES catalog_entry (product_id),
    PRIMARY KEY (facet, title, product_id)
);
CREATE INDEX catalog_facet_by_product ON catalog_facet (product_id);

CREATE TABLE catalog_term (
    term TEXT NOT NULL,
    product_id TEXT NOT NULL REFERENCES catalog_entry (product_id),
    weight BIGINT NOT NULL,
    PRIMARY KEY (term, product_id)
);
CREATE INDEX catalog_term_by_product ON catalog_term (product_id);

-- Every word with one letter left out, to find words that were mistyped by one.
CREATE TABLE catalog_typo (
    shortened TEXT NOT NULL,
    term TEXT NOT NULL,
    PRIMARY KEY (shortened, term)
);

-- builds -----------------------------------------------------------------------------------------

CREATE TABLE upload (
    id TEXT PRIMARY KEY,
    token_hash BLOB NOT NULL UNIQUE,
    org_id TEXT NOT NULL,
    announced_by TEXT NOT NULL,
    purpose TEXT NOT NULL CHECK (purpose IN ('artifact', 'media')),
    subject_id TEXT NOT NULL,
    size BIGINT NOT NULL,
    sha256 TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    finished_at BIGINT
);
CREATE INDEX upload_by_expiry ON upload (expires_at);
CREATE INDEX upload_by_subject ON upload (subject_id);

CREATE TABLE upload_part (
    upload_id TEXT NOT NULL REFERENCES upload (id),
    start_at BIGINT NOT NULL,
    length BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (upload_id, start_at)
);

-- Sealed bytes that something refers to, or did; `condemned` ones are about to be removed.
CREATE TABLE blob (
    sha256 TEXT PRIMARY KEY,
    size BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('live', 'condemned')),
    touched_at BIGINT NOT NULL
);

CREATE INDEX blob_by_state ON blob (state, touched_at);

CREATE TABLE artifact (
    id TEXT PRIMARY KEY,
    release_id TEXT NOT NULL REFERENCES release (id),
    filename TEXT NOT NULL,
    size BIGINT NOT NULL,
    sha256 TEXT,
    platform TEXT,
    status TEXT NOT NULL CHECK (status IN ('receiving', 'ready')),
    created_at BIGINT NOT NULL,
    UNIQUE (release_id, filename)
);
CREATE INDEX artifact_by_blob ON artifact (sha256);

CREATE TABLE download_count (
    artifact_id TEXT NOT NULL REFERENCES artifact (id),
    day TEXT NOT NULL,
    downloads BIGINT NOT NULL,
    PRIMARY KEY (artifact_id, day)
);

-- library and codes ------------------------------------------------------------------------------

-- The owner is `person:<id>` or, for a site licence, `org:<id>`.
CREATE TABLE entitlement (
    owner TEXT NOT NULL,
    product_id TEXT NOT NULL REFERENCES product (id),
    granted_at BIGINT NOT NULL,
    source TEXT NOT NULL,
    revoked_at BIGINT,
    PRIMARY KEY (owner, product_id)
);
CREATE INDEX entitlement_by_newest ON entitlement (owner, granted_at DESC, product_id DESC);
CREATE INDEX entitlement_by_product ON entitlement (product_id);
CREATE INDEX entitlement_by_source ON entitlement (source);

CREATE TABLE code_batch (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organisation (id),
    kind TEXT NOT NULL CHECK (kind IN ('license', 'promo')),
    products TEXT NOT NULL,
    count BIGINT NOT NULL,
    max_uses BIGINT NOT NULL,
    valid_from BIGINT,
    expires_at BIGINT,
    status TEXT NOT NULL CHECK (status IN ('preparing', 'active', 'revoked')),
    sealed_seed BLOB,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX code_batch_by_org ON code_batch (org_id, created_at DESC, id DESC);

CREATE TABLE code (
    code_hash BLOB PRIMARY KEY,
    batch_id TEXT NOT NULL REFERENCES code_batch (id),
    uses BIGINT NOT NULL
);
CREATE INDEX code_by_batch ON code (batch_id);

CREATE TABLE redemption (
    code_hash BLOB NOT NULL REFERENCES code (code_hash),
    owner TEXT NOT NULL,
    redeemed_at BIGINT NOT NULL,
    PRIMARY KEY (code_hash, owner)
);
