-- Blobs are reserved and removed without a transaction that waits for the blob store.
-- `token` changes whenever a removal begins or the row is new: who read it knows by it that no removal began since.
-- A removal belongs to one collector until `claimed_until`.
ALTER TABLE blob ADD COLUMN token TEXT NOT NULL DEFAULT '';
ALTER TABLE blob ADD COLUMN claimed_until BIGINT NOT NULL DEFAULT 0;
