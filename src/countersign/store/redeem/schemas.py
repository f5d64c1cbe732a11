"""Request and response bodies of codes and redemptions (API document, redeem result; decisions 5)."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from countersign.kernel.http.response import Uuid
from countersign.store.catalog.schemas import Cursor, Limit

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
ProductName = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
_ORG = "The slug of the organisation. Required if the caller has roles in several organisations."


class RedeemRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The code to redeem, as the person types it."""

    code: Annotated[
        str,
        msgspec.Meta(min_length=1, max_length=128, description="The code. Case, spaces and dashes are ignored."),
    ]


class RedeemResult(msgspec.Struct):
    """The result of a redemption. `product_id` is the first of the `products` of the code. If `already_owned` is true,
    the caller owned all of them before, and nothing changed."""

    success: bool
    product_id: Uuid
    products: list[str]
    already_owned: bool


class NewBatch(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Codes to issue. A `license` code has one use, a `promo` code has `max_uses`. `valid_from` and `expires_at` limit
    the period of validity."""

    kind: Literal["license", "promo"]
    products: Annotated[list[ProductName], msgspec.Meta(min_length=1, max_length=50)]
    count: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    max_uses: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None = None
    valid_from: Moment | None = None
    expires_at: Moment | None = None


class IssuedBatch(msgspec.Struct):
    """The issued codes. Only this response contains them."""

    batch_id: Uuid
    codes: list[str]


class Batch(msgspec.Struct, kw_only=True):
    """A batch of codes. `uses` is the number of redemptions of all its codes."""

    batch_id: Uuid
    kind: str
    products: list[str]
    count: int
    max_uses: int
    valid_from: str | None
    expires_at: str | None
    status: str
    uses: int
    created_at: str


class BatchQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Selects a page of the batches of an organisation."""

    org: Annotated[ProductName, msgspec.Meta(description=_ORG)] | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


class CodesQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Selects one of the caller's organisations."""

    org: Annotated[ProductName, msgspec.Meta(description=_ORG)] | None = None


class Revocation(msgspec.Struct, forbid_unknown_fields=True):
    """Selects whether the entitlements that the codes granted are also revoked."""

    entitlements: bool = False


class RevokedBatch(msgspec.Struct):
    """A revoked batch, and the number of revoked entitlements."""

    batch_id: Uuid
    status: str
    revoked_entitlements: int
