"""The words in names of columns and tables that indicate secret or personal values."""

from collections.abc import Mapping

SECRET_WORDS = frozenset(
    {
        *("password", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "salt", "otp", "totp", "mfa"),
        *("apikey", "privatekey", "credential", "credentials", "kennwort", "passwort", "passwortes", "geheimnis"),
        *("contrasena", "losenord", "wachtwoord", "senha", "cvv", "cvc", "pin", "token", "tokens", "jwt", "cookie"),
        *("fingerprint", "signature", "keyhash", "hash", "digest", "crypt", "crypted", "encrypted", "ciphertext"),
        *("pass", "userpass", "pw", "psw", "pswd", "passwrd", "dsn", "mnemonic", "nonce", "pincode", "cvn"),
        *("csc", "seedphrase", "motdepasse", "mdp", "clave", "haslo", "sifre", "parola", "pepper", "htpasswd"),
        *("geheim", "geheimzahl", "puk", "tan", "zugangscode", "freischaltcode", "doorcode", "alarmcode", "tuercode"),
        *("combination", "kennzahl", "bearer", "sid", "sessid", "phpsessid", "sessionid", "pem", "keyfile", "psk"),
        *("gpg", "losungswort", "zugangsdaten", "pruefcode"),
    }
)
SECRET_PAIRS = frozenset((
    *(("api", "key"), ("private", "key"), ("access", "key"), ("secret", "key"), ("auth", "key"), ("session", "key")),
    *(("encryption", "key"), ("security", "answer"), ("recovery", "code"), ("backup", "code"), ("reset", "code")),
    *(("session", "id"), ("session", "data"), ("verification", "code"), ("license", "key"), ("consumer", "key")),
    *(("session", "uuid"), ("session", "guid"), ("session", "key"), ("invite", "code"), ("invitation", "code")),
    *(("pass", "phrase"), ("pass", "word"), ("pass", "code"), ("seed", "phrase"), ("connection", "string")),
    *(("database", "url"), ("db", "url"), ("security", "code"), ("access", "code"), ("login", "code")),
    *(("door", "code"), ("gate", "code"), ("alarm", "code"), ("auth", "code"), ("sms", "code"), ("verify", "code")),
    *(("activation", "code"), ("unlock", "code"), ("locker", "code"), ("confirm", "code"), ("mfa", "code")),
    *(("auth", "code"), ("confirmation", "code"), ("sess", "data"), ("sess", "id"), ("remember", "me"), ("sk", "key")),
    *(("signed", "url"), ("share", "link"), ("invite", "link"), ("webhook", "url"), ("security", "question")),
    ("stripe", "sk"),
    *(("code", "verifier"), ("two", "factor"), ("recovery", "codes"), ("backup", "codes")),
    *((word, "key") for word in (
        *("activation", "reset", "kms", "aws", "stripe", "wifi", "signing", "ssh", "pgp", "server", "client"),
        *("webhook", "app", "application", "deploy", "oauth", "totp", "recovery", "storage", "account", "token"),
    )),
    *(("one", "time"), ("magic", "link"), ("reset", "link"), ("master", "key"), ("shared", "key"), ("pre", "shared")),
))
SECRET_PARTS = (
    *("パスワード", "暗証", "秘密", "密码", "пароль", "トークン", "鍵", "APIキー", "アクセスキー", "認証コード"),
    *("合言葉", "비밀번호", "密钥", "口令", "令牌", "токен", "ключ"),
)
SECRET_TABLES = frozenset({"token", "tokens", "otp", "totp", "api", "auth", "session", "sessions", "authtoken"})
"""The words of names of tables in which a column called `key` is secret."""

# Maps a label to words in several languages. One word is sufficient, because names mix languages.
LABEL_WORDS: Mapping[str, frozenset[str]] = {
    "EMAIL": frozenset({"email", "mail", "emailaddress", "epost", "courriel", "correo"}),
    "PHONE": frozenset(
        {
            *("phone", "telephone", "mobile", "cell", "cellphone", "fax", "tel", "telefon", "handy", "phonenumber"),
            *("msisdn", "whatsapp", "rufnummer", "mobil"),
        }
    ),
    "PERSON": frozenset(
        {
            *("firstname", "lastname", "middlename", "fullname", "surname", "forename", "givenname", "familyname"),
            *("maidenname", "nickname", "vorname", "nachname", "familienname", "geburtsname", "prenom", "apellido"),
            *("ansprechpartner", "signatory", "initials", "displayname", "contactname", "personname", "realname"),
        }
    ),
    "ADDRESS": frozenset(
        {
            *("address", "addresses", "street", "postcode", "zip", "zipcode", "plz", "strasse", "hausnummer"),
            *("adresse", "anschrift", "wohnort", "ort", "city", "town", "postal", "postalcode", "district", "rue"),
            *("direccion", "streetaddress", "addressline", "location", "homepage", "adress", "county"),
            *("postleitzahl", "postnummer", "apartment", "geohash", "coordinate", "coordinates"),
        }
    ),
    "TAXID": frozenset({"taxid", "vat", "vatid", "taxnumber", "steuernummer", "steuerid", "ustid", "tin", "ein"}),
    "IDNUMBER": frozenset(
        {
            *("ssn", "passport", "nationalid", "nationalidnumber", "personnummer", "identitycard", "driverlicense"),
            *("socialsecurity", "sozialversicherungsnummer", "ausweis", "ausweisnummer", "licenseplate", "kennzeichen"),
            *("svnr", "ahv", "nino", "cpf", "dni", "nif", "nie", "pesel", "bsn", "aadhaar", "curp", "imei", "imsi"),
        }
    ),
    "BANK": frozenset({"iban", "bic", "swift", "bankaccount", "accountnumber", "routingnumber", "kontonummer", "blz"}),
    "CARD": frozenset({"creditcard", "cardnumber", "pan", "kartennummer", "creditcardnumber"}),
    "IP": frozenset({"ip", "ipaddress", "ipaddr", "remoteaddr", "mac", "macaddress", "macaddr"}),
    "USERNAME": frozenset({"username", "login", "userid", "screenname", "handle", "benutzername", "loginid"}),
    "PHOTO": frozenset({"photo", "photograph", "avatar", "portrait", "picture", "selfie", "lichtbild"}),
}
LABEL_OF_WORD = {word: label for label, known in LABEL_WORDS.items() for word in known}
LABEL_PAIRS: Mapping[tuple[str, str], str] = {
    ("first", "name"): "PERSON", ("last", "name"): "PERSON", ("middle", "name"): "PERSON", ("full", "name"): "PERSON",
    ("given", "name"): "PERSON", ("family", "name"): "PERSON", ("display", "name"): "PERSON",
    ("contact", "name"): "PERSON", ("maiden", "name"): "PERSON", ("user", "name"): "USERNAME",
    ("customer", "name"): "PERSON", ("person", "name"): "PERSON", ("employee", "name"): "PERSON",
    ("tax", "id"): "TAXID", ("tax", "number"): "TAXID", ("vat", "number"): "TAXID", ("national", "id"): "IDNUMBER",
    ("social", "security"): "IDNUMBER", ("card", "number"): "CARD", ("account", "number"): "BANK",
    ("house", "number"): "ADDRESS", ("license", "plate"): "IDNUMBER", ("remote", "addr"): "IP",
}  # fmt: skip
LABEL_PARTS: Mapping[str, str] = {
    "氏名": "PERSON", "名前": "PERSON", "姓": "PERSON", "電話": "PHONE", "携帯": "PHONE", "住所": "ADDRESS",
    "郵便": "ADDRESS", "メール": "EMAIL", "имя": "PERSON", "фамилия": "PERSON", "телефон": "PHONE", "адрес": "ADDRESS",
}  # fmt: skip

PEOPLE = frozenset(
    {
        *("person", "people", "customer", "client", "employee", "staff", "user", "member", "patient", "student"),
        *("contact", "guest", "tenant", "applicant", "candidate", "teacher", "actor", "author", "driver", "worker"),
        *("subscriber", "passenger", "participant", "volunteer", "salesperson", "human", "profile", "lead", "payroll"),
        *("kunde", "kunden", "mitarbeiter", "person", "personal", "mitglied", "mitglieder", "benutzer", "patient"),
        *("schueler", "personen", "salary", "salaries", "gehalt", "cliente", "usuario", "borrower", "donor", "voter"),
        *("resident", "inmate", "pupil", "nurse", "doctor", "parent", "child", "owner", "personnel", "account"),
        *("arzt", "aerzte", "lehrer", "mandant", "mandanten", "angestellte", "angestellter", "angestellten", "victim"),
        *("patienten", "prisoner", "beneficiary", "insured", "defendant", "witness", "sibling", "spouse", "crew"),
        *("attendee", "athlete", "player", "learner", "citizen", "recruit", "hire", "agent", "trainee", "visitor"),
    }
)
PEOPLE_PARTS = ("顧客", "社員", "従業員", "患者", "利用者", "会員", "生徒", "職員", "学生", "児童", "講師", "医師")
PEOPLE_RUNS = ("customer", "employee", "person", "patient", "student", "mitarbeiter", "kunde", "member")

# Words in names of numbers and dates about a person. Only text can be replaced by tokens, so such a column is not
# declared.
PERSONAL_VALUES = frozenset(
    {
        *("birth", "birthday", "birthdate", "dob", "born", "age", "death", "salary", "wage", "income", "payrate"),
        *("geburtsdatum", "geburtstag", "geboren", "alter", "gehalt", "lohn", "bmi", "latitude", "longitude", "lat"),
        *("lng", "lon", "gender", "sex", "religion", "ethnicity", "ethnic", "disability"),
        *("nationality", "marital", "diagnosis", "hiv", "pregnant", "geschlecht", "konfession", "ssn", "iban"),
        *("bonus", "bonuses", "commission", "compensation", "remuneration", "stipend", "pension", "severance", "pay"),
        *("payroll", "wages", "hourlyrate", "netpay", "grosspay", "verguetung", "praemie", "monatsgehalt", "rente"),
        *("hire", "hired", "hiredate", "yob", "birthyear", "geburtsjahr", "deceased", "died", "sterbedatum", "gpa"),
        *("iq", "race", "caste", "citizenship", "allergy", "allergies", "blood", "disease", "illness", "sick"),
        *("krank", "krankheit", "fehltage", "pregnancy", "smoker", "dependents", "geo"),
        *("creditscore", "networth", "debt", "nacimiento", "naissance", "salaire", "salario", "sueldo"),
        *("schwanger", "krebs", "suizid", "suicide", "suicidal", "diagnose", "diagnos", "behindert", "behinderung"),
        *("blutgruppe", "blutdruck", "gebdat", "gebjahr", "gebtag", "geb", "verstorben", "vorstrafe", "haftstrafe"),
        *("familienstand", "kinderzahl", "vermoegen", "schulden", "insolvent", "geschieden", "einkommen", "brutto"),
        *("nettolohn", "steuerklasse", "religioes", "gewerkschaft", "partei", "honorar", "besoldung", "pflegegrad"),
        *("cancer", "systolic", "diastolic", "glucose", "hemoglobin", "insulin", "dose"),
        *("prescription", "vaccinated", "infected", "pregnancies", "medication", "symptom", "heartrate", "bloodtype"),
        *("conviction", "convicted", "felony", "arrested", "criminal", "offender", "sentence", "bail", "alimony"),
        *("settlement", "victim", "support", "bankrupt", "divorced", "married", "immigrant", "immigration"),
        *("refugee", "veteran", "fico", "schufa"),
        *("orientation", "party", "political", "earnings", "overtime", "payscale", "grade", "edad", "leeftijd"),
        *("idade", "sexo", "sexe", "geslacht", "fechanac", "nascimento", "nascita", "geboortedatum", "fodelsedatum"),
        *("latit", "longit", "breitengrad", "laengengrad", "koordinate", "gps", "latlng", "altitude"),
        *("npi", "itin", "tfn", "rut", "egn", "cedula", "documento", "insee", "sin", "nss", "mrn", "dln"),
        *("caller", "telephon", "telephonenumber", "gsm", "celular", "ipv4", "ipv6", "contactno", "ssnum"),
        *("taxpayer", "sozialversicherung", "krankenversicherung", "versichertennr", "personalnr", "matrikelnr"),
    }
)
PERSONAL_VALUE_PAIRS = frozenset({("credit", "score"), ("hourly", "rate"), ("net", "worth"), ("pay", "rate")})
PERSONAL_VALUE_PARTS = (
    *("生年", "誕生", "生まれ", "年齢", "給", "性別", "年収", "体重", "身長", "血圧", "診断", "妊娠", "死亡", "国籍"),
    *("緯度", "経度", "口座", "カード", "免許", "保険", "番号", "成績", "障害", "借金"),
)
NUMBERING_WORDS = frozenset({"no", "nr", "num", "number", "nummer", "numero", "code"})
"""The last words of names of integers that may identify a person."""
IDENTITY_WORDS = frozenset({"card", "account", "konto", "tax", "steuer", "license", "badge", "acct", "routing"})
ATTRIBUTE_WORDS = frozenset({"attribute", "meta", "property", "field", "key", "question", "observation"})
VALUE_WORDS = frozenset({"value", "val", "wert", "answer"})
"""The first words of names of columns that define the meaning of another column's values, such as `attribute_id`."""

BUSINESS_WORDS = frozenset(
    {
        *("total", "amount", "sum", "subtotal", "price", "cost", "fee", "quantity", "qty", "count", "discount", "tax"),
        *("shipping", "paid", "due", "created", "updated", "modified", "changed", "deleted", "at", "on", "date"),
        *("time", "timestamp", "moment", "status", "state", "type", "kind", "position", "sort", "order", "ordered"),
        *("version", "revision", "size", "bytes", "width", "duration", "ms", "seconds", "minutes", "hours", "days"),
        *("percent", "percentage", "rounded", "minor", "cents", "currency", "is", "has", "active", "enabled"),
        *("archived", "published", "visible", "sent", "shipped", "delivered", "received", "returned", "cancelled"),
        *("canceled", "confirmed", "completed", "finished", "start", "end", "begin", "closed", "opened", "open"),
        *("processed", "approved", "line", "item", "items", "unit", "units", "stock", "page", "pages", "index"),
        *("sequence", "seq", "attempts", "retries", "year", "month", "day", "week", "return", "rental", "last"),
        *("update", "payment", "invoice", "issued", "requested", "required", "vat", "net", "shipment", "delivery"),
        *("betrag", "summe", "preis", "kosten", "menge", "anzahl", "datum", "erstellt", "geaendert", "geliefert"),
        *("bezahlt", "rabatt", "mwst", "faellig", "bestellt", "versandt", "rechnung", "zahlung", "lieferung", "am"),
    }
)
"""Words in names of numbers, dates and states of a business process. In a table that refers to people, a column is
clear only if its name consists of these words."""
HARMLESS_IN_PEOPLE = frozenset({"active", "activebool", "enabled", "deleted", "archived"})

# Last words of names of codes and counts. With such an ending, the words before it do not describe the value:
# `name_count` is not a name.
HARMLESS_ENDINGS = ("type", "count", "at")


_FILLING_WORDS = frozenset(
    {
        *("a", "of", "the", "is", "has", "my", "no", "nr", "num", "number", "nummer", "id", "code", "key"),
        *("date", "datum", "day", "year", "month", "time", "value", "text", "old", "new", "last", "first"),
        *("name", "home", "work", "private", "annual", "monthly", "yearly", "hourly", "gross", "net", "base"),
        *("total", "current", "manager", "admin", "owner", "billing", "shipping", "delivery", "invoice"),
        *("emergency", "account", "card", "bank", "db", "database", "api", "app", "web", "site", "mail"),
        *("session", "device", "login", "auth", "master", "root", "test", "temp", "stored", "monats", "jahres"),
        *("stunden", "brutto", "netto", "kunden", "personal", "privat", "firmen", "geburts", "wohn", "steuer"),
        *("rechnungs", "liefer", "kind", "partner", "spouse", "mother", "father", "child", "parent", "doctor"),
        *("passage", "passages"),
    }
)
VOCABULARY = frozenset[str]().union(
    SECRET_WORDS, LABEL_OF_WORD, PERSONAL_VALUES, PEOPLE, _FILLING_WORDS, *LABEL_PAIRS, *SECRET_PAIRS
)
"""The words that are searched inside names without separators."""
