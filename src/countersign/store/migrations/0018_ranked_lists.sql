-- The most downloaded of a kind, and of what is free, without reading the products of other kinds.
CREATE INDEX catalog_index_kind_downloads ON catalog_index (kind, downloads_7d DESC, product_id DESC);
CREATE INDEX catalog_index_free_downloads ON catalog_index (is_free, downloads_7d DESC, product_id DESC);
