"""All that the store keeps sealed under the master key."""

from countersign.kernel.webhooks import receivers
from countersign.store import signing_keys as signing
from countersign.store.auth import token_keys

COLUMNS = (token_keys.SEALED, signing.SEALED, receivers.SEALED)
