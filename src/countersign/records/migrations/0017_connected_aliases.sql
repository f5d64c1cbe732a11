-- A keyed hash of the value of a connected table for which an alias was made, or NULL for records of our own. If another
-- application changes the value, the alias no longer counts.
-- The domain_id of a row of seen_place for an audit entry is the id of the record, not '' as migration 0013 says.
ALTER TABLE pii_alias ADD COLUMN hash BLOB;
