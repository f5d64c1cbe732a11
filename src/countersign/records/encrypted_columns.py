"""All that the records service keeps sealed under the master key; the keys of all else derive from its secret."""

from countersign.kernel.webhooks import receivers
from countersign.records import root_secret

COLUMNS = (root_secret.ENCRYPTED_COLUMN, receivers.ENCRYPTED_COLUMN)
