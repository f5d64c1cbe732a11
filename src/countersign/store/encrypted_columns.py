"""All that the store keeps sealed under the master key."""

from countersign.kernel.webhooks import receivers
from countersign.store import signing_keys as signing
from countersign.store.auth import tokens

COLUMNS = (tokens.ENCRYPTED_KEYS, signing.ENCRYPTED_KEYS, receivers.SEALED)
