-- Names that are no identifiers, or that look like code, SQL, comments or the ends of them.
CREATE SCHEMA "odd.schema ""quoted""";
CREATE TABLE "odd.schema ""quoted"""."a.b" ("c.d" integer PRIMARY KEY, "e""f" varchar(10));
CREATE TABLE """); import os #" (
    id integer PRIMARY KEY,
    """)
import os
#" varchar(20),
    "a
b" varchar(20),
    "'; DROP TABLE customer; --" varchar(20),
    "\" varchar(20),
    "{}" varchar(20),
    "#" varchar(20),
    U&"\0007\202E" varchar(20),
    "😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀" varchar(20),
    " " varchar(20),
    "import" varchar(20),
    "None" varchar(20),
    "__init__" varchar(20),
    "userName" varchar(20),
    "user_name" varchar(20),
    "USER NAME" varchar(20),
    "2nd" varchar(20),
    "a_name_that_is_longer_than_forty_characters_1" varchar(20),
    "a_name_that_is_longer_than_forty_characters_2" varchar(20)
);
CREATE TABLE "😀" (id integer PRIMARY KEY, title varchar(10));
CREATE TABLE "😎" (id integer PRIMARY KEY, title varchar(10), "smile" integer REFERENCES "😀");
CREATE TABLE "Model" (id integer PRIMARY KEY, title varchar(10));
CREATE TABLE "models" (id integer PRIMARY KEY, title varchar(10));
CREATE TABLE "class" (id integer PRIMARY KEY, title varchar(10));
CREATE TABLE meta (id integer PRIMARY KEY, title varchar(10));
CREATE TABLE "line_2_item" (id integer PRIMARY KEY, title varchar(10));
INSERT INTO "odd.schema ""quoted"""."a.b" VALUES (1, 'xMARKx');
INSERT INTO """); import os #" VALUES (
    1, 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx',
    'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx'
);
INSERT INTO "😀" VALUES (1, 'xMARKx');
INSERT INTO "😎" VALUES (1, 'xMARKx', 1);
INSERT INTO "Model" VALUES (1, 'xMARKx');
INSERT INTO "models" VALUES (1, 'xMARKx');
INSERT INTO "class" VALUES (1, 'xMARKx');
INSERT INTO meta VALUES (1, 'xMARKx');
INSERT INTO "line_2_item" VALUES (1, 'xMARKx');
