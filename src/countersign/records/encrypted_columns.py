"""The columns that the records service encrypts under the master key; all other keys derive from its secret."""

from countersign.kernel.webhooks import receivers
from countersign.records import root_secret

COLUMNS = (root_secret.ENCRYPTED_COLUMN, receivers.ENCRYPTED_COLUMN)
