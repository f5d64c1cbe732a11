-- Most questions name a kind. The first index has all that the lists and counts of a kind are tested by, in the order of
-- the lists, so that they read one range of it and not the table; the second has the newest of a kind first.
CREATE INDEX catalog_public_by_kind ON catalog_public (
    kind, title, product_id, platforms, channels, is_free, tags, slug, org_slug, license_key
);
CREATE INDEX catalog_public_by_kind_newest ON catalog_public (kind, last_at DESC, title, product_id);
