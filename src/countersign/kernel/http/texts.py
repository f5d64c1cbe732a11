"""Texts of a known form in answers: ids, addresses and moments. The form is described, not checked."""

from typing import Annotated, TypeAlias

import msgspec

Uuid: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"format": "uuid"})]
Uri: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"format": "uri"})]
UriReference: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"format": "uri-reference"})]
Moment: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
CursorText: TypeAlias = Annotated[
    str,
    msgspec.Meta(description="`next_cursor` of the page before, or the cursor of its Link header; left out: page one."),
]
Sha256: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": "^[0-9a-f]{64}$"})]
