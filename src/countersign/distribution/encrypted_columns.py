"""All that the store keeps sealed under the master key."""

from countersign.distribution.auth import token_keys
from countersign.distribution.signing import queries as signing
from countersign.kernel.webhooks import receivers

COLUMNS = (token_keys.SEALED, signing.SEALED, receivers.SEALED)
