-- A column of every type that the catalog of PostgreSQL offers without an extension, over domains and arrays too.
CREATE DOMAIN short_code AS varchar(12) CHECK (VALUE <> '');
CREATE DOMAIN code AS short_code NOT NULL DEFAULT 'none';
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TYPE odd AS ENUM ('two words', 'TEXT_1', 'naïve', '日本', '');
CREATE TYPE pair AS (a integer, b text);

CREATE TABLE every_type (
    every_type_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    a_smallint smallint, an_integer integer, a_bigint bigint, an_oid oid,
    a_numeric numeric, a_price numeric(10, 2), a_scaled numeric(12, 7), a_negative_scale numeric(5, -2),
    a_real real, a_double double precision, an_amount money,
    a_bool boolean, a_date date, a_timestamp timestamp, a_timestamptz timestamptz, a_time time, a_timetz timetz,
    an_interval interval,
    a_varchar varchar(40), a_long_varchar varchar(5000), a_char char(3), a_text text, a_name name,
    a_code code, a_mood mood, an_odd odd,
    a_uuid uuid, an_inet inet, a_cidr cidr, a_macaddr macaddr,
    a_json json, a_jsonb jsonb, an_xml xml, a_bytea bytea,
    integers integer[], texts text[], moods mood[],
    a_range int4range, a_multirange int4multirange, a_vector tsvector, a_point point, bits bit(3), a_pair pair,
    a_xid xid, a_lsn pg_lsn,
    doubled integer GENERATED ALWAYS AS (an_integer * 2) STORED
);
INSERT INTO every_type (a_smallint, a_numeric, a_text, a_mood, an_odd, a_uuid, a_double) VALUES
    (1, 12.3400, 'xMARKx', 'good', '日本', '00000000-0000-0000-0000-000000000001', 0.5);

CREATE TABLE by_text (code varchar(12) PRIMARY KEY, label varchar(20));
CREATE TABLE by_uuid (id uuid PRIMARY KEY, label varchar(20));
CREATE TABLE by_date (day date PRIMARY KEY, count integer);
CREATE TABLE by_moment (at timestamptz PRIMARY KEY, count integer);
CREATE TABLE by_numeric (number numeric(20, 0) PRIMARY KEY, label varchar(20));
CREATE TABLE by_bytes (hash bytea PRIMARY KEY, size integer);
CREATE TABLE by_mood (mood mood PRIMARY KEY, label varchar(20));
CREATE TABLE only_key (number integer PRIMARY KEY);
CREATE TABLE only_text_key (email varchar(100) PRIMARY KEY);
CREATE TABLE only_bytes (content bytea PRIMARY KEY);
CREATE TABLE event (event_id integer NOT NULL, day date NOT NULL, title text, PRIMARY KEY (event_id, day))
    PARTITION BY RANGE (day);
CREATE TABLE event_2026 PARTITION OF event FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE MATERIALIZED VIEW event_count AS SELECT count(*) AS events FROM event;
CREATE MATERIALIZED VIEW event_title AS SELECT title FROM event WITH NO DATA;
CREATE VIEW broken_view AS SELECT left(title, 1 / (event_id - event_id)) AS title FROM event;
CREATE TABLE parent (parent_id integer PRIMARY KEY, title text);
CREATE TABLE child (extra text) INHERITS (parent);
INSERT INTO every_type (
    a_bigint, an_oid, a_price, a_scaled, a_negative_scale, a_real, a_double, a_bool, a_date, a_timestamp,
    a_timestamptz, a_varchar, a_long_varchar, a_char, a_text, a_name, a_code, an_inet, a_jsonb, texts
) VALUES (
    9007199254740993, 1, 12.34, 1.5, 1200, 1.25, 'NaN', true, '2026-01-02', '2026-01-02 03:04:05',
    'infinity', 'xMARKx', 'xMARKx', 'x', 'xMARKx', 'xMARKx', 'xMARKx', '192.0.2.1', '{"a": "xMARKx"}', '{xMARKx}'
), (
    NULL, NULL, 'NaN', NULL, NULL, NULL, '-Infinity', false, '-infinity', '0044-03-15 00:00:00 BC',
    NULL, NULL, NULL, NULL, NULL, NULL, 'xMARKx', NULL, NULL, NULL
);
INSERT INTO by_text VALUES ('xMARKx', 'xMARKx');
INSERT INTO by_uuid VALUES ('00000000-0000-0000-0000-000000000001', 'xMARKx');
INSERT INTO by_date VALUES ('2026-01-02', 1);
INSERT INTO by_moment VALUES ('2026-01-02 03:04:05.678901+00', 1);
INSERT INTO by_numeric VALUES (12345678901234567890, 'xMARKx');
INSERT INTO by_bytes VALUES ('\x00ff', 1);
INSERT INTO by_mood VALUES ('bad', 'xMARKx');
INSERT INTO only_key VALUES (1);
INSERT INTO only_text_key VALUES ('xMARKx@example.com');
INSERT INTO event VALUES (1, '2026-01-02', 'xMARKx');
INSERT INTO parent VALUES (1, 'xMARKx');
INSERT INTO child VALUES (2, 'xMARKx', 'xMARKx');
