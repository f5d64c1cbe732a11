-- A deletion of a connected record erases the copies of its personal values in plans about it.
CREATE INDEX plan_step_by_record ON plan_step (record_id);
