-- What organisations say of themselves, and one row for each that has public products: by it publishers are listed.

-- `text` is plain text; `website` an address.
ALTER TABLE organisation ADD COLUMN text TEXT;
ALTER TABLE organisation ADD COLUMN website TEXT;

-- `releases` counts the product's published releases.
ALTER TABLE catalog_index ADD COLUMN releases BIGINT NOT NULL DEFAULT 0;
UPDATE catalog_index SET releases = (
    SELECT count(*) FROM release r WHERE r.product_id = catalog_index.product_id AND r.status = 'published'
);

-- Counts of the public products of an organisation and their published releases, one row for each organisation that has
-- or had products.
CREATE TABLE catalog_publisher (
    org_id TEXT PRIMARY KEY REFERENCES organisation (id),
    slug TEXT NOT NULL UNIQUE,
    product_count BIGINT NOT NULL,
    release_count BIGINT NOT NULL,
    last_release_at BIGINT
);
CREATE INDEX organisation_by_name ON organisation (name, slug);
CREATE INDEX catalog_public_org_newest ON catalog_public (org_slug, last_at);

INSERT INTO catalog_publisher (org_id, slug, product_count, release_count, last_release_at)
SELECT o.id, o.slug, k.products, k.releases, (SELECT max(c.last_at) FROM catalog_public c WHERE c.org_slug = o.slug)
FROM organisation o
JOIN (
    SELECT org_slug, sum(is_public) AS products, sum(is_public * releases) AS releases
    FROM catalog_index
    GROUP BY org_slug
) k ON k.org_slug = o.slug;

-- Words of titles, by which products are suggested while somebody types.
CREATE INDEX catalog_term_of_titles ON catalog_term (term, product_id) WHERE weight >= 8;
