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
);
CREATE INDEX catalog_index_by_change ON catalog_index (changed);
CREATE INDEX catalog_index_by_update ON catalog_index (updated_at DESC, product_id DESC);
CREATE INDEX catalog_index_by_downloads ON catalog_index (downloads_7d DESC, product_id DESC);

INSERT INTO catalog_index (
    product_id, number, changed, is_public, kind, platforms, channels, is_free, org_slug, tags, published_at,
    updated_at, downloads_7d
)
SELECT p.id, row_number() OVER (ORDER BY p.id), 0, CASE WHEN p.status = 'public' THEN 1 ELSE 0 END, p.kind,
       CASE WHEN p.platforms LIKE '%"windows"%' THEN 1 ELSE 0 END
       + CASE WHEN p.platforms LIKE '%"macos"%' THEN 2 ELSE 0 END
       + CASE WHEN p.platforms LIKE '%"linux"%' THEN 4 ELSE 0 END
       + CASE WHEN p.platforms LIKE '%"android"%' THEN 8 ELSE 0 END
       + CASE WHEN p.platforms LIKE '%"ios"%' THEN 16 ELSE 0 END
       + CASE WHEN p.platforms LIKE '%"web"%' THEN 32 ELSE 0 END,
       coalesce(r.channels, 0),
       CASE WHEN p.access = 'free' THEN 1 ELSE 0 END,
       o.slug,
       replace(replace(replace(replace(p.tags, '[', ' '), ']', ' '), '"', ''), ',', ' '),
       coalesce(r.last_at, p.created_at),
       CASE WHEN coalesce(r.last_at, 0) > p.updated_at THEN r.last_at ELSE p.updated_at END,
       0
FROM product p
JOIN organisation o ON o.id = p.org_id
JOIN catalog_entry e ON e.product_id = p.id
LEFT JOIN (
    SELECT product_id, max(published_at) AS last_at,
           max(CASE WHEN channel = 'stable' THEN 1 ELSE 0 END)
           + max(CASE WHEN channel = 'beta' THEN 2 ELSE 0 END)
           + max(CASE WHEN channel = 'nightly' THEN 4 ELSE 0 END)
           + max(CASE WHEN channel = 'alpha' THEN 8 ELSE 0 END) AS channels
    FROM release
    WHERE status = 'published'
    GROUP BY product_id
) r ON r.product_id = p.id;
