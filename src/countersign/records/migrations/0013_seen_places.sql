-- Where the agents of a token domain, or an audit entry (domain_id ''), last saw a value of a connected table. It has the
-- id of the record and never the value. user_id is the person whose session row-level security policies read.
CREATE TABLE seen_place (
    value_id BIGINT NOT NULL,
    domain_id TEXT NOT NULL,
    model TEXT NOT NULL,
    field TEXT NOT NULL,
    record_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    PRIMARY KEY (value_id, domain_id, model, field)
);
-- The day since which no record of a connected table has the value. After some days the value and its key are deleted.
ALTER TABLE pii_value ADD COLUMN gone_day BIGINT;
CREATE INDEX pii_value_by_gone_day ON pii_value (gone_day) WHERE gone_day IS NOT NULL;
-- The last day on which the places were read again.
CREATE TABLE value_sweep (day BIGINT PRIMARY KEY);
