-- Statuses as integers and as limited texts, and times as milliseconds since 1970.
CREATE TABLE ticket (
    id integer PRIMARY KEY,
    status integer NOT NULL DEFAULT 0 CHECK (status IN (0, 1, 2)),
    priority varchar(10) NOT NULL CHECK (priority IN ('low', 'high')),
    kind text,
    created_at_ms bigint NOT NULL,
    revision integer NOT NULL,
    changed boolean,
    "class" varchar(10)
);
CREATE TABLE plan (id integer PRIMARY KEY, title varchar(40));
CREATE TABLE "user" (id integer PRIMARY KEY, name varchar(40), status varchar(40), karma integer);
CREATE TABLE "Text" (id integer PRIMARY KEY, text varchar(40), module varchar(40), declared varchar(40));
CREATE TABLE audit (id integer PRIMARY KEY, title varchar(40));
INSERT INTO ticket VALUES (1, 1, 'low', 'bug', 1767225600000, 3, true, 'xMARKx');
INSERT INTO plan VALUES (1, 'xMARKx');
INSERT INTO "user" VALUES (1, 'Ada xMARKx', 'busy xMARKx', 7);
INSERT INTO "Text" VALUES (1, 'xMARKx', 'xMARKx', 'xMARKx');
INSERT INTO audit VALUES (1, 'xMARKx');
