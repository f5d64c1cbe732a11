-- Jobs: what was asked for, who works on it, what came of it.

-- Whoever knows `lease` has the job until `lease_until`; `losses` counts how often a worker died over it. An attempt
-- that is given back, because its worker was told to stop, is not counted.
CREATE TABLE job (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organisation (id),
    created_by TEXT NOT NULL,
    type TEXT NOT NULL,
    payload TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'completed', 'failed')),
    progress REAL NOT NULL,
    attempts BIGINT NOT NULL,
    losses BIGINT NOT NULL,
    cancelled BIGINT NOT NULL,
    lease TEXT,
    lease_until BIGINT,
    run_after BIGINT NOT NULL,
    result TEXT,
    error TEXT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT
);
CREATE INDEX job_by_org ON job (org_id, created_at DESC, id DESC);
CREATE INDEX job_by_state ON job (org_id, status);
CREATE INDEX job_by_turn ON job (status, run_after, org_id);
CREATE INDEX job_by_end ON job (finished_at);

-- Processes that work on jobs, and when each was last seen.
CREATE TABLE job_worker (
    id TEXT PRIMARY KEY,
    seen_at BIGINT NOT NULL
);
