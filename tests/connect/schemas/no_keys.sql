-- Tables without a primary key: with a unique index that can be the key, and with indexes that cannot.
CREATE TABLE by_unique_index (code varchar(10) NOT NULL UNIQUE, a integer NOT NULL, b integer NOT NULL, title text);
CREATE UNIQUE INDEX two_numbers ON by_unique_index (a, b);
CREATE TABLE by_integer (code varchar(10) NOT NULL UNIQUE, number integer NOT NULL UNIQUE, title text);
CREATE TABLE nullable (code varchar(10) UNIQUE, title text);
CREATE TABLE partial (code varchar(10) NOT NULL, is_live boolean NOT NULL);
CREATE UNIQUE INDEX live_codes ON partial (code) WHERE is_live;
CREATE TABLE expression (code varchar(10) NOT NULL);
CREATE UNIQUE INDEX lower_codes ON expression (lower(code));
CREATE TABLE deferred (code varchar(10) NOT NULL UNIQUE DEFERRABLE INITIALLY DEFERRED, title text);
CREATE TABLE nothing (title text);
CREATE TABLE no_column ();
CREATE TABLE refers_to_none (number integer PRIMARY KEY, code varchar(10) REFERENCES nullable (code), title text);
INSERT INTO by_unique_index VALUES ('xMARKx', 1, 2, 'xMARKx');
INSERT INTO by_integer VALUES ('xMARKx', 1, 'xMARKx');
INSERT INTO refers_to_none VALUES (1, NULL, 'xMARKx');
