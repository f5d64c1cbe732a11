"""The columns that the records service encrypts with the master key. All other keys are derived from the secret of the
service."""

from countersign.kernel.webhooks import receivers
from countersign.records import root_secret

COLUMNS = (root_secret.ENCRYPTED_COLUMN, receivers.ENCRYPTED_COLUMN)
