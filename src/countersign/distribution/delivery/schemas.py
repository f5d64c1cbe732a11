"""The parameters of deliveries."""

from typing import Annotated

import msgspec

from countersign.distribution.catalog.schemas import Platform

Version = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class BuildQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Which of a release's builds is meant; without a platform the one that names none."""

    platform: Platform | None = None


class DeltaQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """From which version of the same product and platform."""

    from_: Version = msgspec.field(name="from")
    platform: Platform | None = None
