-- The sites that a person was sent on to with what they allowed, as a JSON array: a client that registered itself may
-- have several. Empty for what was allowed before they were kept.
ALTER TABLE consent ADD COLUMN sites TEXT NOT NULL DEFAULT '[]';
