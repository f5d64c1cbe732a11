-- Several tenants in each table, of which row-level security shows one.
CREATE TABLE tenant (id integer PRIMARY KEY, title varchar(40) NOT NULL);
CREATE TABLE member (
    tenant_id integer NOT NULL REFERENCES tenant, number integer NOT NULL, name varchar(40), email varchar(60),
    PRIMARY KEY (tenant_id, number)
);
CREATE TABLE document (
    tenant_id integer NOT NULL, id integer NOT NULL, member_number integer, title varchar(80), body text,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, member_number) REFERENCES member (tenant_id, number)
);
ALTER TABLE member ENABLE ROW LEVEL SECURITY;
ALTER TABLE document ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_members ON member USING (tenant_id = 1);
CREATE POLICY own_documents ON document USING (tenant_id = 1);
INSERT INTO tenant VALUES (1, 'North'), (2, 'South');
INSERT INTO member VALUES (1, 1, 'Ada xMARKx', 'ada@xMARKx.example'), (2, 1, 'Bob xMARKx', 'bob@xMARKx.example');
INSERT INTO document VALUES (1, 1, 1, 'Offer to xMARKx', 'Dear xMARKx'), (2, 1, 1, 'Letter to xMARKx', 'To xMARKx');
