-- The smaller sizes of a cover, in other formats than its own; `color` is the mean of its pixels, #rrggbb.
ALTER TABLE media ADD COLUMN color TEXT;
CREATE TABLE media_size (
    media_id TEXT NOT NULL REFERENCES media (id),
    media_type TEXT NOT NULL,
    width BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    size BIGINT NOT NULL,
    PRIMARY KEY (media_id, media_type, width)
);
CREATE INDEX media_size_by_blob ON media_size (sha256);
