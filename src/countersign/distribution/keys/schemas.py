"""What is asked and answered about self-serve keys."""

import msgspec

from countersign.distribution.identity.provisioned import Tier


class KeyQuery(msgspec.Struct, forbid_unknown_fields=True):
    """What the key is for."""

    tier: Tier = "community"


class ProvisionedKey(msgspec.Struct):
    """The provisioned key of the API document; the key is shown in this answer alone."""

    status: str
    api_key: str
    self_serve: bool
    free_tier: bool
