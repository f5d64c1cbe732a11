-- What only SQLite has: columns without a type, values of another type, keys with empty values, and short foreign keys.
CREATE TABLE customer (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    e_mail NVARCHAR(60),
    birthday DATE,
    untyped,
    odd_type SOMETHING(12),
    password_hash TEXT
);
CREATE TABLE "Order Lines" (
    order_id INTEGER NOT NULL,
    line_no INT NOT NULL,
    customer INTEGER REFERENCES CUSTOMER,
    product TEXT REFERENCES product (code),
    price DECIMAL(10, 2),
    weight REAL,
    ordered_at DATETIME,
    is_paid BOOLEAN,
    total NUMERIC GENERATED ALWAYS AS (price * 2) VIRTUAL,
    PRIMARY KEY (order_id, line_no)
) WITHOUT ROWID;
CREATE TABLE product (code TEXT PRIMARY KEY, title TEXT, picture BLOB, details JSON);
CREATE TABLE empty_keys (code TEXT PRIMARY KEY, title TEXT);
CREATE TABLE by_index (code TEXT NOT NULL, number INTEGER NOT NULL UNIQUE, title TEXT);
CREATE TABLE by_expression (code TEXT NOT NULL, title TEXT);
CREATE UNIQUE INDEX lower_code ON by_expression (lower(code));
CREATE TABLE partial (code TEXT NOT NULL, is_live BOOLEAN);
CREATE UNIQUE INDEX live_code ON partial (code) WHERE is_live;
CREATE TABLE "semi;colon ""quoted""" (id INTEGER PRIMARY KEY, "a
b" TEXT);
CREATE VIEW names AS SELECT name FROM customer;
CREATE TRIGGER keep AFTER UPDATE ON product BEGIN SELECT 1; END;
CREATE VIRTUAL TABLE search USING fts5 (title);
INSERT INTO customer VALUES (1, 'Ada', 'ada@example.com', '1980-01-01', 'x', 'y', 'hunter2');
INSERT INTO product VALUES ('A1', 'Chair', x'00', '{}');
INSERT INTO "Order Lines" (order_id, line_no, customer, product, price) VALUES (1, 1, 1, 'A1', 12.5);
INSERT INTO customer VALUES (2, 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx');
INSERT INTO product VALUES ('A2', 'xMARKx', x'00', '{}');
INSERT INTO "Order Lines" (order_id, line_no, customer, product, price, weight, ordered_at, is_paid)
VALUES (1, 2, 2, 'A2', 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx');
INSERT INTO by_index VALUES ('xMARKx', 1, 'xMARKx');
INSERT INTO "semi;colon ""quoted""" VALUES (1, 'xMARKx');
INSERT INTO empty_keys VALUES (NULL, 'none');
