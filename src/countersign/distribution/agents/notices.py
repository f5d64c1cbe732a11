"""The letter that tells a person an agent acts for them now (attack T25: so that one they did not mean is noticed)."""

from functools import partial

from countersign.distribution.agents import registrations
from countersign.distribution.context import Store
from countersign.distribution.identity import queries, scopes
from countersign.kernel import clock, telemetry
from countersign.kernel.errors import Unavailable
from countersign.kernel.mail.queue import Email


def connected(store: Store, registration_id: str) -> None:
    """Tell the agent's person, once the answer is out. A letter that cannot wait is let go: the agent stands on the
    page of connected agents all the same."""
    try:
        store.mail.enqueue(partial(_letter, store, registration_id))
    except Unavailable:
        telemetry.logger("agents").warning("no room for a notice", registration=registration_id)


async def _letter(store: Store, registration_id: str) -> Email | None:
    found = await registrations.with_id(store.database, registration_id)
    person = None if found is None else await queries.person(store.database, found.person_id or "")
    if found is None or person is None or found.status != "claimed":
        return None
    name = store.settings.resource_name
    may = "\n".join(f"- {scopes.MEANING[scope]}" for scope in scopes.ALL if scope in found.scopes)
    text = (
        f"An agent that calls itself “{found.agent}” can act for you at {name} since "
        f"{clock.rfc3339(found.claimed_at or clock.now())}. It registered from {found.address or 'a server'}.\n\n"
        f"It can:\n{may}\n\n"
        f"Was it not you? Disconnect it, and set another password:\n{store.root_url}/auth/agents\n"
    )
    return Email(person.email, f"An agent can act for you at {name}", text)
