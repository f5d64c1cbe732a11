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
CREATE INDEX release_by_moment ON release (published_at, channel, product_id) WHERE status = 'published';

INSERT INTO catalog_public (
    product_id, slug, title, name_key, org_slug, kind, platforms, channels, is_free, license, license_key, first_at,
    last_at, tags
)
SELECT p.id, p.slug, p.title, '', o.slug, p.kind,
       CASE WHEN p.platforms LIKE '%"windows"%' THEN 1 ELSE 0 END
       + CASE WHEN p.platforms LIKE '%"macos"%' THEN 2 ELSE 0 END
       + CASE WHEN p.platforms LIKE '%"linux"%' THEN 4 ELSE 0 END
       + CASE WHEN p.platforms LIKE '%"android"%' THEN 8 ELSE 0 END
       + CASE WHEN p.platforms LIKE '%"ios"%' THEN 16 ELSE 0 END
       + CASE WHEN p.platforms LIKE '%"web"%' THEN 32 ELSE 0 END,
       coalesce(r.channels, 0),
       CASE WHEN p.access = 'free' THEN 1 ELSE 0 END,
       p.license, '', r.first_at, r.last_at,
       replace(replace(replace(replace(p.tags, '[', ' '), ']', ' '), '"', ''), ',', ' ')
FROM product p
JOIN organisation o ON o.id = p.org_id
LEFT JOIN (
    SELECT product_id, min(published_at) AS first_at, max(published_at) AS last_at,
           max(CASE WHEN channel = 'stable' THEN 1 ELSE 0 END)
           + max(CASE WHEN channel = 'beta' THEN 2 ELSE 0 END)
           + max(CASE WHEN channel = 'nightly' THEN 4 ELSE 0 END)
           + max(CASE WHEN channel = 'alpha' THEN 8 ELSE 0 END) AS channels
    FROM release
    WHERE status = 'published'
    GROUP BY product_id
) r ON r.product_id = p.id
WHERE p.status = 'public';
