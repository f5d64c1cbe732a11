-- Columns whose types and first values look harmless. Both engines read this file.
CREATE TABLE thing (
    id integer PRIMARY KEY,
    cvv smallint, pin integer, otp int, manager_pin bigint, managerpin bigint, salt integer,
    userpass text, pass varchar(255), user_pass varchar(255), pw text, pswd text, dsn text, mnemonic text, nonce text,
    session_uuid uuid,
    ip bigint, zip integer, plz int, mac bigint, phone bigint, email_number integer, kundenplz integer,
    dateofbirth date, annualsalary numeric(10, 2), bonus numeric, stundenlohn numeric(6, 2), userage integer,
    is_pregnant boolean,
    invite uuid, status text, unit text, sku text, type text, color varchar(20), country_code varchar(20),
    quantity integer, price numeric(10, 2), delivered date, is_open boolean
);
INSERT INTO thing (id, status, unit, sku, type, color, country_code, quantity)
WITH RECURSIVE counted (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM counted WHERE at < 2500)
SELECT at, 'open', 'kg', 'A1', 'a', 'red', 'AT', 1 FROM counted;
INSERT INTO thing (id, status, unit, sku, type, color, country_code, quantity)
VALUES (2501, 'waits for xMARKx', 'xMARKx', 'xMARKx@example.com', 'xMARKx', 'xMARKx', 'xMARKx', 1);
