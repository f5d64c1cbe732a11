-- Where a person is signed in: the browser and the system of a session, read from User-Agent at the sign-in, and when the
-- session was last used, which is written once an hour at most. Sessions of earlier versions have none of them.
ALTER TABLE session ADD COLUMN browser TEXT;
ALTER TABLE session ADD COLUMN system TEXT;
ALTER TABLE session ADD COLUMN seen_at BIGINT;
CREATE INDEX session_by_person ON session (person_id);
