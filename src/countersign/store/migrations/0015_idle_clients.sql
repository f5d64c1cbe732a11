-- Clients that registered themselves end when nobody uses them: `used_at` is when a person last let the client in.
CREATE INDEX consent_by_client ON consent (client_id);
CREATE INDEX authorization_code_by_client ON authorization_code (client_id);
CREATE INDEX dynamic_client_used ON dynamic_client (used_at) WHERE used_at IS NOT NULL;
