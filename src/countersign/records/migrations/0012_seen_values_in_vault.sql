-- The vault stores the values of existing databases that callers have seen. Their ids are computed from the values, so
-- that tokens stay the same.
DROP TABLE seen_value;
