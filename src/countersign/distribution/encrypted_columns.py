"""All that the store keeps sealed under the master key."""

from countersign.distribution import signing_keys as signing
from countersign.distribution.auth import token_keys
from countersign.kernel.webhooks import receivers

COLUMNS = (token_keys.SEALED, signing.SEALED, receivers.SEALED)
