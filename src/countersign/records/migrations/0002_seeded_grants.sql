-- Which declared roles (model '') and grants were written into their tables once: what an administrator makes of them
-- afterwards stays so.
CREATE TABLE seeded_grant (role TEXT NOT NULL, model TEXT NOT NULL, PRIMARY KEY (role, model)) WITHOUT ROWID;

-- One open token domain for each person and label, whoever else opens it at the same moment.
CREATE UNIQUE INDEX token_domain_open ON token_domain (user_id, label) WHERE closed_at IS NULL;
