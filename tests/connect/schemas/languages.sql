-- Names and values in German and Japanese, and names whose words are not divided.
CREATE TABLE "Mitarbeiter" (
    "PersNr" integer PRIMARY KEY,
    "Vorname" varchar(40), "Nachname" varchar(40), "Straße" varchar(60), "PLZ" varchar(5), "Ort" varchar(40),
    "Geburtsdatum" date, "Gehalt" numeric(10, 2), "Steuernummer" varchar(20), "Kennwort" varchar(60),
    "E-Mail" varchar(60), "Bemerkung" text
);
CREATE TABLE "顧客" (
    "顧客番号" integer PRIMARY KEY, "氏名" varchar(40), "住所" varchar(80), "電話番号" varchar(20), "メール" varchar(60),
    "生年月日" date, "パスワード" varchar(60), "備考" text, "都道府県" varchar(10)
);
CREATE TABLE employeerecords (
    recordid integer PRIMARY KEY, nationalidnumber varchar(15), employeefirstname varchar(40), emailaddress varchar(60),
    passwordhash varchar(60), birthdate date, hourlyrate numeric(8, 4)
);
CREATE TABLE "Öffnungszeiten" (
    "Schlüssel" integer PRIMARY KEY, "Wochentag" varchar(10), "geöffnet" boolean, "Käufer" varchar(40)
);
INSERT INTO "顧客" VALUES (1, '山田太郎', '東京都千代田区', '03-1234-5678', 'taro@example.jp', '1980-01-01', 'x', 'なし', '東京');
INSERT INTO "Öffnungszeiten" VALUES (1, 'Montag', true, 'Jörg Müller');
INSERT INTO "Mitarbeiter" VALUES (
    1, 'Jörg xMARKx', 'Müller xMARKx', 'Weg xMARKx 1', '10115', 'Ort xMARKx', '1980-01-01', 1.5, 'xMARKx', 'xMARKx',
    'xMARKx@example.de', 'xMARKx'
);
INSERT INTO "顧客" VALUES (2, 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx', NULL, 'xMARKx', 'xMARKx', 'xMARKx');
INSERT INTO employeerecords VALUES (1, 'xMARKx', 'xMARKx', 'xMARKx', 'xMARKx', '1980-01-01', 12.5);
INSERT INTO "Öffnungszeiten" VALUES (2, 'xMARKx', false, 'xMARKx');
