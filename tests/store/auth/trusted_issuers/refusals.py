"""The refusals of tokens."""

import pytest

from countersign.kernel.errors import Refused
from countersign.store.auth import id_jag
from countersign.store.context import Store


async def refusal_code(store: Store, token: str) -> str:
    """Return the code of the refusal of an assertion. Its text must not contain any part of the token."""
    with pytest.raises(Refused) as refusal:
        await id_jag.verify(store, token)
    assert refusal.value.status in (400, 401)
    for token_part in token.split("."):
        assert len(token_part) < 12 or token_part not in refusal.value.detail
    return refusal.value.code
