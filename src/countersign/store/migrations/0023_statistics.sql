-- Statistics: one row a day for each metric of a release on a platform. They replace the counts of files.

-- `day` is a date in UTC. `version` and `platform` are '' where the metric has none, `product_id` is '' for followers of an
-- organisation. `followers` counts changes: its sum up to a day is the number of followers.
CREATE TABLE daily_count (
    org_id TEXT NOT NULL,
    metric TEXT NOT NULL CHECK (metric IN ('downloads', 'bytes', 'updates', 'redemptions', 'followers')),
    day TEXT NOT NULL,
    product_id TEXT NOT NULL,
    version TEXT NOT NULL,
    platform TEXT NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (org_id, metric, day, product_id, version, platform)
);
CREATE INDEX daily_count_by_day ON daily_count (metric, day, product_id);
CREATE INDEX daily_count_by_release ON daily_count (product_id, version);

INSERT INTO daily_count (org_id, metric, day, product_id, version, platform, value)
SELECT p.org_id, 'downloads', d.day, p.id, r.version, coalesce(a.platform, ''), sum(d.downloads)
FROM download_count d
JOIN artifact a ON a.id = d.artifact_id
JOIN release r ON r.id = a.release_id
JOIN product p ON p.id = r.product_id
GROUP BY p.org_id, d.day, p.id, r.version, coalesce(a.platform, '');

INSERT INTO daily_count (org_id, metric, day, product_id, version, platform, value)
SELECT p.org_id, 'bytes', d.day, p.id, r.version, coalesce(a.platform, ''), sum(d.downloads * a.size)
FROM download_count d
JOIN artifact a ON a.id = d.artifact_id
JOIN release r ON r.id = a.release_id
JOIN product p ON p.id = r.product_id
GROUP BY p.org_id, d.day, p.id, r.version, coalesce(a.platform, '');

DROP TABLE download_count;

CREATE INDEX redemption_by_moment ON redemption (redeemed_at);

-- The last day whose redemptions were counted, and the last day that products were ranked by their downloads.
CREATE TABLE statistics_state (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    counted_day TEXT NOT NULL,
    ranked_day TEXT NOT NULL
);
INSERT INTO statistics_state (one, counted_day, ranked_day) VALUES (1, '1970-01-01', '1970-01-01');
