"""OAuth endpoints: tokens, authorization with consent, revocation, and metadata."""
