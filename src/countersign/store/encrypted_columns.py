"""Every column that the store encrypts with the master key."""

from countersign.kernel.webhooks import receivers
from countersign.store import signing_keys as signing
from countersign.store.auth import tokens

COLUMNS = (tokens.ENCRYPTED_COLUMN, signing.ENCRYPTED_COLUMN, receivers.ENCRYPTED_COLUMN)
