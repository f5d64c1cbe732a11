"""Forms and queries of the account pages."""

from typing import Annotated

import msgspec

from countersign.distribution.identity.schemas import ReturnTo


class AskQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Where to go once the account is open: a path of this service."""

    return_to: ReturnTo = "/"


class AskForm(msgspec.Struct, forbid_unknown_fields=True):
    """The address that a letter is asked for."""

    email: Annotated[str, msgspec.Meta(max_length=254)] = ""
    return_to: ReturnTo = "/"


class ProveQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The token of a mailed link."""

    token: Annotated[str, msgspec.Meta(max_length=200, description="The token of the mailed link.")] = ""


class ProveForm(msgspec.Struct, forbid_unknown_fields=True):
    """The password chosen behind a mailed link."""

    token: Annotated[str, msgspec.Meta(max_length=200)] = ""
    password: Annotated[str, msgspec.Meta(max_length=1_000)] = ""
