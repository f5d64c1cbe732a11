-- While there is a row, nothing goes out to webhooks' receivers: so a restored store begins.
CREATE TABLE delivery_hold (id BIGINT PRIMARY KEY CHECK (id = 1), since BIGINT NOT NULL);
