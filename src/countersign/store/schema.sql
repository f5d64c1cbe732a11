-- The whole current schema, to read. `make schema` writes it from migrations/; only those are ever applied.

-- The store's first schema. Moments are microseconds since 1970 in UTC; lists and objects are JSON text.

-- What changed since an answer was made: one counter for the catalog, one for who may do what.
CREATE TABLE version (
    name TEXT PRIMARY KEY,
    number BIGINT NOT NULL
);

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
, text TEXT, website TEXT);
CREATE INDEX organisation_by_name ON organisation (name, slug);

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
, redirect_uris TEXT NOT NULL DEFAULT '[]', implicit BIGINT NOT NULL DEFAULT 0);
CREATE INDEX oauth_client_by_org ON oauth_client (org_id, id);

CREATE TABLE session (
    token_hash BLOB PRIMARY KEY,
    person_id TEXT NOT NULL REFERENCES person (id),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
, browser TEXT, system TEXT, seen_at BIGINT);
CREATE INDEX session_by_expiry ON session (expires_at);
CREATE INDEX session_by_person ON session (person_id);

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
, summary TEXT, buy_url TEXT, languages TEXT NOT NULL DEFAULT '[]');
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
    yank_reason TEXT, notes_only BIGINT NOT NULL DEFAULT 0,
    UNIQUE (product_id, version)
);
CREATE INDEX release_by_newest ON release (product_id, published_at DESC, sort_key DESC, id DESC);
CREATE INDEX release_by_moment ON release (published_at, channel, product_id) WHERE status = 'published';

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
, color TEXT, duration_ms BIGINT);
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
, encoding BIGINT NOT NULL DEFAULT 0);
CREATE INDEX catalog_entry_by_newest ON catalog_entry (status, published_at DESC, product_id DESC);
CREATE INDEX catalog_entry_by_org ON catalog_entry (org_id, title, product_id);
CREATE INDEX catalog_entry_by_encoding ON catalog_entry (encoding, product_id);
-- only: sqlite
-- SQLite reads a page in the order of titles from this index alone. The row of a product fills more than one page of the
-- file, so that reading 20 rows takes twice as long. PostgreSQL's index ends with product_id.
CREATE INDEX catalog_entry_by_title ON catalog_entry (status, title, product_id, published_at, etag, card);
-- end
-- only: postgres
CREATE INDEX catalog_entry_by_title ON catalog_entry (status, title, product_id);
-- end

-- One row for each thing a list can be narrowed to: kind:game, platform:linux, org:slug, tag:word.
CREATE TABLE catalog_facet (
    facet TEXT NOT NULL,
    title TEXT NOT NULL,
    product_id TEXT NOT NULL REFERENCES catalog_entry (product_id), published_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (facet, title, product_id)
);
CREATE INDEX catalog_facet_by_product ON catalog_facet (product_id);
CREATE INDEX catalog_facet_by_newest ON catalog_facet (facet, published_at DESC, product_id DESC);

CREATE TABLE catalog_term (
    term TEXT NOT NULL,
    product_id TEXT NOT NULL REFERENCES catalog_entry (product_id),
    weight BIGINT NOT NULL, title TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (term, product_id)
);
CREATE INDEX catalog_term_by_product ON catalog_term (product_id);
-- Words of titles, by which products are suggested while somebody types.
CREATE INDEX catalog_term_of_titles ON catalog_term (term, title, product_id) WHERE weight >= 8;

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
, token TEXT NOT NULL DEFAULT '', claimed_until BIGINT NOT NULL DEFAULT 0);
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
CREATE INDEX redemption_by_moment ON redemption (redeemed_at);
-- The codes that a person redeemed, for the export of what the store keeps about them.
CREATE INDEX redemption_by_owner ON redemption (owner, code_hash);

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
    used_at BIGINT, sites TEXT NOT NULL DEFAULT '[]',
    UNIQUE (person_id, client_id)
);
-- Clients that registered themselves end when nobody uses them: `used_at` is when a person last let the client in.
CREATE INDEX consent_by_client ON consent (client_id);

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
CREATE INDEX authorization_code_by_client ON authorization_code (client_id);

-- Access tokens that ended before their time, until they would have.
CREATE TABLE revoked_token (
    jti TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE INDEX revoked_token_by_expiry ON revoked_token (expires_at);

-- Jobs: what was asked for, who works on it, what came of it.

-- Whoever knows `lease` has the job until `lease_until`; `losses` counts how often a worker died over it. An attempt
-- that is given back, because its worker was told to stop, is not counted.
CREATE TABLE job (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organisation (id),
    created_by TEXT NOT NULL,
    type TEXT NOT NULL,
    payload TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'completed', 'failed')),
    progress REAL NOT NULL,
    attempts BIGINT NOT NULL,
    losses BIGINT NOT NULL,
    cancelled BIGINT NOT NULL,
    lease TEXT,
    lease_until BIGINT,
    run_after BIGINT NOT NULL,
    result TEXT,
    error TEXT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT
, priority BIGINT NOT NULL DEFAULT 1);
CREATE INDEX job_by_org ON job (org_id, created_at DESC, id DESC);
CREATE INDEX job_by_state ON job (org_id, status);
CREATE INDEX job_by_end ON job (finished_at);
CREATE INDEX job_by_turn ON job (status, priority, run_after, org_id);

-- Processes that work on jobs, and when each was last seen.
CREATE TABLE job_worker (
    id TEXT PRIMARY KEY,
    seen_at BIGINT NOT NULL
);

-- Builds: what was made of artifacts, the chunks they share, the deltas between them, and the keys that sign.

-- An organisation's keys; `number` counts from 1, the highest signs. `rotation` is the envelope by which the key
-- before it named it.
CREATE TABLE signing_key (
    org_id TEXT NOT NULL REFERENCES organisation (id),
    number BIGINT NOT NULL,
    keyid TEXT NOT NULL UNIQUE,
    public TEXT NOT NULL,
    sealed BLOB NOT NULL,
    rotation TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, number)
);

-- The newest statement of each channel.
CREATE TABLE channel_statement (
    product_id TEXT NOT NULL REFERENCES product (id),
    channel TEXT NOT NULL,
    counter BIGINT NOT NULL,
    said TEXT NOT NULL,
    envelope TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (product_id, channel)
);

-- `manifest_sha256` is of the signed payload, `envelope_sha256` names the blob of the whole envelope. `blocks` are
-- BLAKE3 digests of the artifact's own bytes, one for each `block_size` of them. `platform` is '' where none is named.
CREATE TABLE build (
    artifact_id TEXT PRIMARY KEY REFERENCES artifact (id),
    org_id TEXT NOT NULL,
    product_id TEXT NOT NULL REFERENCES product (id),
    release_id TEXT NOT NULL REFERENCES release (id),
    platform TEXT NOT NULL,
    manifest_sha256 TEXT NOT NULL,
    envelope_sha256 TEXT NOT NULL,
    files BIGINT NOT NULL,
    size BIGINT NOT NULL,
    summary TEXT NOT NULL,
    sbom TEXT,
    block_size BIGINT NOT NULL,
    blocks BLOB NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX build_by_release ON build (release_id, platform);
CREATE INDEX build_by_product ON build (product_id, platform, created_at);
CREATE INDEX build_by_envelope ON build (envelope_sha256);

-- A blob of chunks, one zstd frame after another; `unused` counts those that were removed from its rows since.
CREATE TABLE pack (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size BIGINT NOT NULL,
    unused BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX pack_by_blob ON pack (sha256);
CREATE INDEX pack_by_waste ON pack (unused);

-- `id` is BLAKE3 of the chunk, `refs` how many builds use it, `idle_at` since when none does.
CREATE TABLE chunk (
    org_id TEXT NOT NULL,
    id TEXT NOT NULL,
    size BIGINT NOT NULL,
    pack_id TEXT NOT NULL REFERENCES pack (id),
    start_at BIGINT NOT NULL,
    length BIGINT NOT NULL,
    refs BIGINT NOT NULL,
    idle_at BIGINT,
    PRIMARY KEY (org_id, id)
);
CREATE INDEX chunk_by_pack ON chunk (pack_id);
CREATE INDEX chunk_by_idleness ON chunk (idle_at);

-- A prepared way from one build to another; `sha256` names its blob, `listing` its files.
CREATE TABLE delta (
    id TEXT PRIMARY KEY,
    from_artifact TEXT NOT NULL REFERENCES build (artifact_id),
    to_artifact TEXT NOT NULL REFERENCES build (artifact_id),
    sha256 TEXT NOT NULL,
    size BIGINT NOT NULL,
    listing TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX delta_by_pair ON delta (to_artifact, from_artifact);
CREATE INDEX delta_by_blob ON delta (sha256);

-- Pairs that were looked at: `state` is 'wanted' until its deltas are there (or were not worth it).
CREATE TABLE delta_pair (
    from_artifact TEXT NOT NULL REFERENCES build (artifact_id),
    to_artifact TEXT NOT NULL REFERENCES build (artifact_id),
    state TEXT NOT NULL CHECK (state IN ('wanted', 'ready')),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (from_artifact, to_artifact)
);

-- Keys that anybody takes without asking: `key_hash` is SHA-256 of the key. One that is not used for long is removed.
CREATE TABLE api_key (
    key_hash BLOB PRIMARY KEY,
    tier TEXT NOT NULL CHECK (tier IN ('community', 'sandbox', 'agent')),
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL
);
CREATE INDEX api_key_by_use ON api_key (used_at);

-- Questions: one narrow row for each public product, with what its published releases add up to. Drafts, archived
-- products and unpublished releases leave no trace here, so that no answer made from it can tell of them.

-- The rows lie in the order of the catalog, so that reading all of them in order is one pass. `tags` is ' one two ' ;
-- `name_key` and `license_key` are title and licence as they are looked up, '' until they were written; `platforms` and
-- `channels` have one bit for each, in the order of the API's lists; `first_at` and `last_at` are of published releases.
CREATE TABLE catalog_public (
    product_id TEXT NOT NULL REFERENCES product (id),
    slug TEXT NOT NULL,
    title TEXT NOT NULL,
    name_key TEXT NOT NULL,
    org_slug TEXT NOT NULL,
    kind TEXT NOT NULL,
    platforms BIGINT NOT NULL,
    channels BIGINT NOT NULL,
    is_free BIGINT NOT NULL,
    license TEXT,
    license_key TEXT NOT NULL,
    first_at BIGINT,
    last_at BIGINT,
    tags TEXT NOT NULL,
    PRIMARY KEY (title, product_id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX catalog_public_by_product ON catalog_public (product_id);
CREATE INDEX catalog_public_by_slug ON catalog_public (slug);
CREATE INDEX catalog_public_by_name ON catalog_public (name_key, title, product_id);
CREATE INDEX catalog_public_by_org ON catalog_public (org_slug, title, product_id);
CREATE INDEX catalog_public_by_license ON catalog_public (license_key, license);
CREATE INDEX catalog_public_by_newest ON catalog_public (last_at DESC, title, product_id);
-- Most questions name a kind. The first index has all that the lists and counts of a kind are tested by, in the order of
-- the lists, so that they read one range of it and not the table; the second has the newest of a kind first.
CREATE INDEX catalog_public_by_kind ON catalog_public (
    kind, title, product_id, platforms, channels, is_free, tags, slug, org_slug, license_key
);
CREATE INDEX catalog_public_by_kind_newest ON catalog_public (kind, last_at DESC, title, product_id);
CREATE INDEX catalog_public_org_newest ON catalog_public (org_slug, last_at);

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

-- While there is a row, nothing goes out to webhooks' receivers: so a restored store begins.
CREATE TABLE delivery_hold (id BIGINT PRIMARY KEY CHECK (id = 1), since BIGINT NOT NULL);

-- The id of the installation, which its data directory and its blob store have too; when the collector last ran.
CREATE TABLE installation (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    collected_at BIGINT NOT NULL
);

-- Files that the database knows and that nothing refers to, and since when: noted before they are stored, or once the
-- collector finds them so. A file that is neither here nor in `blob` was never known here, and is never removed.
CREATE TABLE idle_blob (sha256 TEXT PRIMARY KEY, since BIGINT NOT NULL);

-- What the collector found when it last ran. `stopped` says why it removed nothing; empty: it was not stopped.
CREATE TABLE collection (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    ran_at BIGINT NOT NULL,
    files BIGINT NOT NULL,
    due BIGINT NOT NULL,
    unknown BIGINT NOT NULL,
    unknown_bytes BIGINT NOT NULL,
    stopped TEXT NOT NULL
);

-- OAuth clients that registered themselves (RFC 7591). They belong to no organisation. `used_at` is when a person first
-- let the client in; an unused one ends by itself.
CREATE TABLE dynamic_client (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    secret_hash BLOB NOT NULL,
    scopes TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT
);
CREATE INDEX dynamic_client_unused ON dynamic_client (created_at, id) WHERE used_at IS NULL;
CREATE INDEX dynamic_client_used ON dynamic_client (used_at) WHERE used_at IS NOT NULL;

-- What lists of products are counted and ordered by: one narrow row for each product, drafts and archived ones too.

-- `number` counts the products from 1, and is the product's place in sets that are kept in memory. `changed` is the
-- catalog's version of the last change, so that such sets follow by reading what is newer. `published_at` is of the newest
-- published release, or of the creation; `updated_at` of the last change of the product or its releases. `platforms` and
-- `channels` have one bit for each, in the order of the API's lists; `tags` is ' one two '. `downloads_7d` is counted
-- once a day, and is of the last seven whole days.
CREATE TABLE catalog_index (
    product_id TEXT PRIMARY KEY REFERENCES catalog_entry (product_id),
    number BIGINT NOT NULL UNIQUE,
    changed BIGINT NOT NULL,
    is_public BIGINT NOT NULL,
    kind TEXT NOT NULL,
    platforms BIGINT NOT NULL,
    channels BIGINT NOT NULL,
    is_free BIGINT NOT NULL,
    org_slug TEXT NOT NULL,
    tags TEXT NOT NULL,
    published_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    downloads_7d BIGINT NOT NULL
, releases BIGINT NOT NULL DEFAULT 0);
CREATE INDEX catalog_index_by_change ON catalog_index (changed);
CREATE INDEX catalog_index_by_update ON catalog_index (updated_at DESC, product_id DESC);
CREATE INDEX catalog_index_by_downloads ON catalog_index (downloads_7d DESC, product_id DESC);
-- The most downloaded of a kind, and of what is free, without reading the products of other kinds.
CREATE INDEX catalog_index_kind_downloads ON catalog_index (kind, downloads_7d DESC, product_id DESC);
CREATE INDEX catalog_index_free_downloads ON catalog_index (is_free, downloads_7d DESC, product_id DESC);

-- Counts of the public products of an organisation and their published releases, one row for each organisation that has
-- or had products.
CREATE TABLE catalog_publisher (
    org_id TEXT PRIMARY KEY REFERENCES organisation (id),
    slug TEXT NOT NULL UNIQUE,
    product_count BIGINT NOT NULL,
    release_count BIGINT NOT NULL,
    last_release_at BIGINT
);

CREATE TABLE media_size (
    media_id TEXT NOT NULL REFERENCES media (id),
    media_type TEXT NOT NULL,
    width BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    size BIGINT NOT NULL,
    PRIMARY KEY (media_id, media_type, width)
);
CREATE INDEX media_size_by_blob ON media_size (sha256);

-- What a person, or an organisation with site licences, follows and keeps of its library. `owner` is as in `entitlement`.

-- `target_id` is a product or an organisation.
CREATE TABLE follow (
    owner TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('product', 'org')),
    target_id TEXT NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (owner, kind, target_id)
);
CREATE INDEX follow_by_target ON follow (kind, target_id);

CREATE TABLE product_collection (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (owner, name)
);

CREATE TABLE product_collection_item (
    collection_id TEXT NOT NULL REFERENCES product_collection (id),
    product_id TEXT NOT NULL REFERENCES product (id),
    added_at BIGINT NOT NULL,
    PRIMARY KEY (collection_id, product_id)
);

-- What its owner says of a product in the library; `downloaded_*` is what was last downloaded, and for which platform.
CREATE TABLE library_item (
    owner TEXT NOT NULL,
    product_id TEXT NOT NULL REFERENCES product (id),
    hidden BIGINT NOT NULL,
    note TEXT,
    downloaded_version TEXT,
    downloaded_platform TEXT,
    downloaded_at BIGINT,
    PRIMARY KEY (owner, product_id)
);

-- Until when the owner has seen the notifications, which are derived from releases and entitlements.
CREATE TABLE notification_state (owner TEXT PRIMARY KEY, seen_at BIGINT NOT NULL);

-- Statistics: one row a day for each metric of a release on a platform. They replace the counts of files.

-- `day` is a date in UTC. `version` and `platform` are '' where the metric has none, `product_id` is '' for followers of an
-- organisation. `followers` counts changes: its sum up to a day is the number of followers.
CREATE TABLE daily_count (
    org_id TEXT NOT NULL,
    metric TEXT NOT NULL CHECK (metric IN ('downloads', 'bytes', 'updates', 'redemptions', 'followers')),
    day TEXT NOT NULL,
    product_id TEXT NOT NULL,
    version TEXT NOT NULL,
    platform TEXT NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (org_id, metric, day, product_id, version, platform)
);
CREATE INDEX daily_count_by_day ON daily_count (metric, day, product_id);
CREATE INDEX daily_count_by_release ON daily_count (product_id, version);

-- The last day whose redemptions were counted, and the last day that products were ranked by their downloads.
CREATE TABLE statistics_state (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    counted_day TEXT NOT NULL,
    ranked_day TEXT NOT NULL
);
