"""Whoever has the key of a data set: a person who owns an organisation in it."""

from countersign.distribution.auth import organisations, people, queries, tokens
from countersign.distribution.context import Store
from countersign.kernel import clock

EMAIL = "owner@sandbox.example"
ORGANISATION = ("sandbox", "Sandbox")


async def ensured(store: Store) -> str:
    """The id of the owner, who is made together with the organisation where the data set is new."""
    async with store.database.transaction() as transaction:
        known = await queries.person_with_email(transaction, EMAIL)
        if known is None:
            org = await organisations.create_organisation(transaction, *ORGANISATION)
            known = await people.add_person(transaction, EMAIL, None)
            await people.set_role(transaction, org.id, EMAIL, "owner")
        return known.id


class Pass:
    """The owner's token for one data set, made anew before it ends. It never leaves the server."""

    def __init__(self, store: Store, person_id: str) -> None:
        self._store = store
        self._person_id = person_id
        self._token = ""
        self._renewed_s = float("-inf")

    async def token(self) -> str:
        """A token with every scope that the owner holds now."""
        now_s = clock.monotonic_s()
        if now_s - self._renewed_s > self._store.settings.token_ttl_s / 2:
            held = await tokens.held_by_person(self._store.database, self._person_id)
            self._token = tokens.issue(self._store, self._person_id, tokens.FIRST_PARTY, held)
            self._renewed_s = now_s
        return self._token
