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
