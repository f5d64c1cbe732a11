-- The duration of a video in milliseconds, where its file contains it.
ALTER TABLE media ADD COLUMN duration_ms BIGINT;
