"""The OAuth endpoints: tokens, authorization with consent, revocation, and the metadata that leads to them."""
