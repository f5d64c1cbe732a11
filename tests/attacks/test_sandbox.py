"""The sandbox as a way to what is the service's own, or to more of it than a stranger may have."""

from dataclasses import replace

import pytest

from countersign.distribution.sandbox.front import Front
from countersign.settings import Settings
from tests.distribution.ask.test_model import STRANGE, Stub, stub
from tests.distribution.sandbox.conftest import database_url, front, http, original_folder, sandbox
from tests.distribution.sandbox.data import Sandbox
from tests.distribution.world import World

__all__ = ["database_url", "front", "http", "original_folder", "sandbox", "stub"]


class TestModel:
    """The operator pays for a model."""

    @pytest.fixture
    def settings(self, settings: Settings, stub: Stub) -> Settings:
        """A model's address and key."""
        return replace(settings, ask_model_url=stub.url, ask_model="tiny", ask_model_key="model-key")

    async def test_strangers_texts_and_questions_do_not_reach_the_operators_model(
        self, sandbox: Sandbox, stub: Stub
    ) -> None:
        asked = await sandbox.call("POST", "/ask", json={"query": STRANGE})
        generated = await sandbox.call("POST", "/ask", json={"query": "How many games?", "mode": "generate"})

        assert asked.status_code == 200
        assert generated.json()["code"] == "not_supported"
        assert stub.seen == []
