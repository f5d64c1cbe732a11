-- A small shop: people, references, money, an enum, a trigger, a view, a table of a migration tool.
CREATE TYPE order_state AS ENUM ('new', 'paid', 'on hold', 'shipped');

CREATE TABLE store (
    store_id serial PRIMARY KEY,
    title varchar(100) NOT NULL
);

CREATE TABLE customer (
    customer_id serial PRIMARY KEY,
    store_id integer NOT NULL REFERENCES store,
    first_name varchar(45) NOT NULL,
    last_name varchar(45) NOT NULL,
    email varchar(50) UNIQUE,
    phone text,
    note text,
    password_hash text,
    date_of_birth date,
    activebool boolean NOT NULL DEFAULT true
);

CREATE TABLE "OrderDetails" (
    "orderId" bigint NOT NULL,
    "lineNo" smallint NOT NULL,
    "customerId" integer REFERENCES customer,
    "unitPrice" numeric(10, 2) NOT NULL,
    quantity integer NOT NULL DEFAULT 1,
    state order_state NOT NULL DEFAULT 'new',
    "orderedAt" timestamptz,
    delivered timestamp,
    weight_kg double precision,
    PRIMARY KEY ("orderId", "lineNo")
);

CREATE TABLE shipment (
    shipment_id uuid PRIMARY KEY,
    order_id bigint NOT NULL,
    line_no smallint NOT NULL,
    carrier text,
    contact text,
    FOREIGN KEY (line_no, order_id) REFERENCES "OrderDetails" ("lineNo", "orderId")
);

CREATE TABLE log (message text);

CREATE TABLE schema_migrations (version text PRIMARY KEY);

CREATE VIEW customer_list AS SELECT customer_id, first_name FROM customer;

CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER keep_note BEFORE UPDATE ON customer FOR EACH ROW EXECUTE FUNCTION touched();

INSERT INTO store (title) VALUES ('North xMARKx'), ('South xMARKx');
INSERT INTO customer (store_id, first_name, last_name, email, phone, note, password_hash, date_of_birth)
SELECT 1 + n % 2, 'First xMARKx' || n, 'Last xMARKx' || n, 'xMARKx' || n || '@example.com', '+49 30 12345' || n,
    'call xMARKx ' || n, md5(n::text), date '1980-01-01' + n
FROM generate_series(1, 40) AS n;
INSERT INTO "OrderDetails" ("orderId", "lineNo", "customerId", "unitPrice", state, "orderedAt", weight_kg)
SELECT n, 1, 1 + n % 40, n + 0.5, 'paid', timestamptz '2026-01-01 10:00:00+00', 1.5
FROM generate_series(1, 60) AS n;
INSERT INTO shipment (shipment_id, order_id, line_no, carrier, contact)
SELECT md5(n::text)::uuid, n, 1, 'Post xMARKx', 'xMARKx' || n || '@example.org' FROM generate_series(1, 30) AS n;
