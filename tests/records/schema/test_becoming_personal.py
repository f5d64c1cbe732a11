"""If a field becomes personal, its earlier values in history and audit are hidden too."""

import json
from pathlib import Path

from countersign.declare import Model, Text
from tests.records import inside
from tests.records.schema.conftest import model

SECRET = "ada@example.com"


def contact(*, is_personal: bool) -> type[Model]:
    """Return the model before and after."""
    return model("contact", title=Text(), email=Text(personal="EMAIL") if is_personal else Text())


async def test_an_agent_sees_neither_the_value_nor_its_older_copies_in_clear(
    database_url: str, tmp_path: Path
) -> None:
    async with inside.open_service(database_url, tmp_path, contact(is_personal=False)) as before:
        root = before.administrator()
        made = await before.value(root, "contact", "create", title="Ada", email="old@example.com")
        await before.value(root, "contact", "update", id=made["id"], email=SECRET)

    async with inside.open_service(database_url, tmp_path, contact(is_personal=True)) as after:
        agent, root = await after.agent("scout"), after.administrator()
        seen = await after.value(agent, "contact", "get", id=made["id"])
        story = await after.value(agent, "contact", "history", id=made["id"])
        log = await after.value(agent, "audit_entry", "list")
        known = await after.value(root, "contact", "history", id=made["id"])

    assert seen["email"].startswith("EMAIL_")
    assert len(story) == 2
    assert "@example.com" not in json.dumps([story, log])
    assert "old@example.com" in json.dumps(known)
    assert SECRET in json.dumps(known)
