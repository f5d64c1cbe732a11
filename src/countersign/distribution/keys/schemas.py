"""What is asked and answered about self-serve keys."""

from typing import Annotated

import msgspec

from countersign.distribution.identity.provisioned import Tier

_TIERS = (
    "What the key is for: `community` for public reads, `agent` for those and the sandbox with a higher quota, "
    "`sandbox` for the sandbox alone."
)


class KeyQuery(msgspec.Struct, forbid_unknown_fields=True):
    """What the key is for."""

    tier: Annotated[Tier, msgspec.Meta(description=_TIERS)] = "community"


class ProvisionedKey(msgspec.Struct):
    """The provisioned key of the API document; the key is shown in this answer alone."""

    status: str
    api_key: str
    self_serve: bool
    free_tier: bool
