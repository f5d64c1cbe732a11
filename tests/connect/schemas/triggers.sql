-- Triggers that write other columns and other tables, and that refuse; a rule, and a generated column.
CREATE TABLE account (
    id integer PRIMARY KEY, holder varchar(40), balance numeric(10, 2) NOT NULL DEFAULT 0,
    doubled numeric(12, 2) GENERATED ALWAYS AS (balance * 2) STORED, updated_at timestamptz
);
CREATE TABLE account_log (id bigserial PRIMARY KEY, account_id integer, what text, at timestamptz DEFAULT now());
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at = now();
    INSERT INTO account_log (account_id, what) VALUES (NEW.id, 'changed by ' || NEW.holder);
    RETURN NEW;
END $$;
CREATE FUNCTION refuse_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'accounts stay';
END $$;
CREATE TRIGGER changed BEFORE INSERT OR UPDATE ON account FOR EACH ROW EXECUTE FUNCTION note_change();
CREATE TRIGGER kept BEFORE TRUNCATE ON account EXECUTE FUNCTION refuse_truncate();
CREATE RULE log_stays AS ON DELETE TO account_log DO INSTEAD NOTHING;
INSERT INTO account (id, holder, balance) VALUES (1, 'Ada xMARKx', 10), (2, 'Bob xMARKx', 2.5);
