"""The parameters of deliveries."""

from typing import Annotated

import msgspec

from countersign.distribution.catalog.schemas import Platform

Version = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
_BUILD = "The platform of the build; left out: the build that names no platform."


class BuildQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Which of a release's builds is meant; without a platform the one that names none."""

    platform: Annotated[Platform, msgspec.Meta(description=_BUILD)] | None = None


class DeltaQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """From which version of the same product and platform."""

    from_: Annotated[Version, msgspec.Meta(description="The version that the caller has.")] = msgspec.field(name="from")
    platform: Annotated[Platform, msgspec.Meta(description=_BUILD)] | None = None
