"""The wire shapes of POST /batch (API document, Batch operation and result; decisions 7)."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

MAX_OPERATIONS = 50


class Operation(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One call: its path is relative to the versioned API, or begins with that API's own address. Of the headers,
    Idempotency-Key, If-Match, If-None-Match and Prefer may be given."""

    method: Annotated[Literal["GET", "POST", "PUT"], Meta(description="The method of the call.")]
    path: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=8192,
            description="The path below the versioned API, with its query.",
            examples=["/products?platform=linux&limit=5"],
        ),
    ]
    body: Annotated[dict[str, Any], Meta(description="The body of the call.")] | None = None
    headers: (
        Annotated[
            dict[str, Annotated[str, Meta(max_length=1024)]],
            Meta(max_length=4, description="Idempotency-Key, If-Match, If-None-Match or Prefer of the call."),
        ]
        | None
    ) = None


class BatchRequest(msgspec.Struct, forbid_unknown_fields=True):
    """`parallel` operations are independent of each other; `atomic` ones have an effect together or none."""

    operations: Annotated[
        list[Operation],
        Meta(min_length=1, max_length=MAX_OPERATIONS, description="The calls, in the order of the results."),
    ]
    mode: Annotated[
        Literal["parallel", "atomic"],
        Meta(description="`parallel`: each call by itself; `atomic`: in order, all of them or none."),
    ] = "parallel"


class BatchResult(msgspec.Struct, omit_defaults=True):
    """What one operation was answered; a body that is no object stands in it as `items`."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] | None = None


class BatchResponse(msgspec.Struct):
    """The results, in the order of the operations."""

    results: list[BatchResult]
