"""What a refused token is told."""

import pytest

from countersign.kernel.errors import Refused
from countersign.store.auth import id_jag
from countersign.store.context import Store


async def refused(store: Store, token: str) -> str:
    """The code of the refusal of an assertion; nothing of the token is in its text."""
    with pytest.raises(Refused) as found:
        await id_jag.verify(store, token)
    assert found.value.status in (400, 401)
    for part in token.split("."):
        assert len(part) < 12 or part not in found.value.detail
    return found.value.code
