"""All that the store keeps sealed under the master key."""

from countersign.distribution.identity import keys
from countersign.distribution.signing import queries as signing
from countersign.kernel.webhooks import receivers

COLUMNS = (keys.SEALED, signing.SEALED, receivers.SEALED)
