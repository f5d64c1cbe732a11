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
    async with inside.open_service(database_url, tmp_path, contact(is_personal=False)) as clear_service:
        root = clear_service.administrator()
        created_contact = await clear_service.value(root, "contact", "create", title="Ada", email="old@example.com")
        await clear_service.value(root, "contact", "update", id=created_contact["id"], email=SECRET)

    async with inside.open_service(database_url, tmp_path, contact(is_personal=True)) as personal_service:
        agent, root = await personal_service.agent("scout"), personal_service.administrator()
        shown_contact = await personal_service.value(agent, "contact", "get", id=created_contact["id"])
        story = await personal_service.value(agent, "contact", "history", id=created_contact["id"])
        log = await personal_service.value(agent, "audit_entry", "list")
        history = await personal_service.value(root, "contact", "history", id=created_contact["id"])

    assert shown_contact["email"].startswith("EMAIL_")
    assert len(story) == 2
    assert "@example.com" not in json.dumps([story, log])
    assert "old@example.com" in json.dumps(history)
    assert SECRET in json.dumps(history)
