-- When each plan changed last, as a number taken under a lock that is held until the change is committed: who has seen a
-- number has seen all smaller ones. Plans without a row changed last before there were any.
CREATE TABLE plan_change (plan_id TEXT PRIMARY KEY, number BIGINT NOT NULL) WITHOUT ROWID;
CREATE UNIQUE INDEX plan_change_by_number ON plan_change (number);
INSERT INTO version (name, number) VALUES ('plan', 0);
