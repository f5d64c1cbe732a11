-- `priority` is 0 for a build, 1 for another requested job, 2 for what the store prepares by itself.

ALTER TABLE job ADD COLUMN priority BIGINT NOT NULL DEFAULT 1;
UPDATE job SET priority = CASE type WHEN 'build.process' THEN 0 WHEN 'delta.make' THEN 2 ELSE 1 END;
DROP INDEX job_by_turn;
CREATE INDEX job_by_turn ON job (status, priority, run_after, org_id);
