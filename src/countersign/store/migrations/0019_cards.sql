-- What a product's card shows: its own summary; and on its page where to buy it, and its languages (JSON).
ALTER TABLE product ADD COLUMN summary TEXT;
ALTER TABLE product ADD COLUMN buy_url TEXT;
ALTER TABLE product ADD COLUMN languages TEXT NOT NULL DEFAULT '[]';

-- `encoding` is the number of the encoding that card and detail have; rows with an earlier one are rewritten at start.
ALTER TABLE catalog_entry ADD COLUMN encoding BIGINT NOT NULL DEFAULT 0;
CREATE INDEX catalog_entry_by_encoding ON catalog_entry (encoding, product_id);
