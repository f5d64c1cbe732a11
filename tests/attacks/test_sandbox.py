"""Attacks through the sandbox: on the service's own data, or for more resources than an anonymous caller may have."""

from dataclasses import replace

import pytest

from countersign.settings import Settings
from tests.store.ask.test_model import STRANGE, Stub, stub
from tests.store.sandbox.conftest import database_url, front, http, sandbox, template_folder
from tests.store.sandbox.data import SandboxCaller

__all__ = ["database_url", "front", "http", "sandbox", "stub", "template_folder"]


class TestModel:
    """A store whose operator pays for a model."""

    @pytest.fixture
    def settings(self, settings: Settings, stub: Stub) -> Settings:
        """A model's address and key."""
        return replace(settings, ask_model_url=stub.url, ask_model="tiny", ask_model_key="model-key")

    async def test_strangers_texts_and_questions_do_not_reach_the_operators_model(
        self, sandbox: SandboxCaller, stub: Stub
    ) -> None:
        ask_answer = await sandbox.call("POST", "/ask", json={"query": STRANGE})
        generated_response = await sandbox.call("POST", "/ask", json={"query": "How many games?", "mode": "generate"})

        assert ask_answer.status_code == 200
        assert generated_response.json()["code"] == "not_supported"
        assert stub.seen == []


class TestQuota:
    """A person has ten requests a minute."""

    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        """A small quota."""
        return replace(settings, rate_person=10, rate_token=1_000)

    async def test_callers_made_inside_have_no_more_than_their_owner(self, sandbox: SandboxCaller) -> None:
        tokens: list[str] = []
        for _ in range(3):
            client_response = await sandbox.call(
                "POST", "/org/clients", json={"name": "more", "scopes": ["read:products"]}
            )
            client_credentials = {
                "client_id": client_response.json()["client_id"],
                "client_secret": client_response.json()["client_secret"],
            }
            form = {"grant_type": "client_credentials", **client_credentials}
            tokens.append((await sandbox.call("POST", "/auth/login", data=form)).json()["access_token"])

        answers = [
            await sandbox.call("GET", "/products", headers={"Authorization": f"Bearer {token}"})
            for token in tokens
            for _ in range(5)
        ]

        assert [answer.status_code for answer in answers] == [200] * 4 + [429] * 11
        assert answers[-1].json()["code"] == "rate_limit_exceeded"
        assert answers[-1].headers.get_list("ratelimit-remaining") == ["0"]
