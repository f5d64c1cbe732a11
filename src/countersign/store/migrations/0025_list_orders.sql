-- The newest products of a facet, without reading its other products.
ALTER TABLE catalog_facet ADD COLUMN published_at BIGINT NOT NULL DEFAULT 0;
UPDATE catalog_facet
SET published_at = (SELECT e.published_at FROM catalog_entry e WHERE e.product_id = catalog_facet.product_id);
CREATE INDEX catalog_facet_by_newest ON catalog_facet (facet, published_at DESC, product_id DESC);

-- The products with a word in their title, by title: the first pages of a search for a common word.
ALTER TABLE catalog_term ADD COLUMN title TEXT NOT NULL DEFAULT '';
UPDATE catalog_term
SET title = (SELECT e.title FROM catalog_entry e WHERE e.product_id = catalog_term.product_id)
WHERE weight >= 8;
DROP INDEX catalog_term_of_titles;
CREATE INDEX catalog_term_of_titles ON catalog_term (term, title, product_id) WHERE weight >= 8;
