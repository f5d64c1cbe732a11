-- A release that is meant to have no files is published without a build.
ALTER TABLE release ADD COLUMN notes_only BIGINT NOT NULL DEFAULT 0;
