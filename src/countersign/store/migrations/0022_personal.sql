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
