-- While there is a row, nothing goes out to webhooks' receivers, and no letter about plans: so restored records begin.
CREATE TABLE delivery_hold (id BIGINT PRIMARY KEY CHECK (id = 1), since BIGINT NOT NULL);
