"""Mentions of people in comments: who is mentioned, who is notified, and the names that a page completes.

`@` and the name of a user mention this person. Only people whom the writer sees can be mentioned, and only people who
see the record are notified. A person learns at once that somebody does not see the record. An agent does not, because
what others see may depend on values that are hidden from the agent.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from countersign.declare.fields.field import Stored
from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader
from countersign.records.access.people import SIGNS, folded
from countersign.records.access.view import Caller, ModelView
from countersign.records.commands import audit_history, call_log, comments, list_search, unmask_input
from countersign.records.commands.errors import BadInput, no_such_record, refuse_unknown_keys
from countersign.records.commands.run import Body, Run

MAX_MENTIONS = 10
"""The maximum number of people that one comment mentions."""
MAX_AN_HOUR = 100
"""The maximum number of mentions of one person and the person's agents in an hour."""
MAX_PEOPLE = 10
"""The maximum number of people in a response of `comment.people`."""
MAX_CHECKED = 50
"""The maximum number of people whose rights one call of `comment.people` checks."""
NOTICE_DAYS = 14
MAX_NOTICES = 50
_MAX_WORDS = 200
_MAX_NAME = 100
_MAX_ENDINGS = 4
"""The number of user names that one mention may mean: with and without the signs at its end."""

_WORD = re.compile(rf"(?<![\w{re.escape(SIGNS)}])@([^\s,;:!?()\[\]{{}}<>\"'`´‘’“”„«»/\\|]{{1,{_MAX_NAME}}})")
"""A mention as it is written. An e-mail address is not a mention, because it has no `@` at its beginning."""

_NAMED = 'SELECT id, username, username__folded FROM "user" WHERE is_active = 1 AND username__folded IN ({places})'
_OF_COMMENT = "SELECT user_id FROM comment_mention WHERE comment_id = $1"
_OF_COMMENTS = """
SELECT m.comment_id, m.user_id, u.username
FROM comment_mention AS m
JOIN "user" AS u ON u.id = m.user_id
WHERE m.comment_id IN ({places})
ORDER BY m.comment_id, u.username
"""
_RECENT = "SELECT count(*) FROM comment_mention WHERE author_id = $1 AND at > $2"
_ADD = """
INSERT INTO comment_mention (comment_id, user_id, author_id, model, record_id, at) VALUES ($1, $2, $3, $4, $5, $6)
"""
_REMOVE = "DELETE FROM comment_mention WHERE comment_id = $1 AND user_id = $2"
_REMOVE_ALL = "DELETE FROM comment_mention WHERE comment_id = $1"
_REMOVE_PERSON = "DELETE FROM comment_mention WHERE user_id = $1"
_UNSEEN = f"""
SELECT m.at, m.model, u.username, c.agent, m.record_id, c.author, m.comment_id
FROM comment_mention AS m
JOIN "comment" AS c ON c.id = m.comment_id
LEFT JOIN "user" AS u ON u.id = c.author
WHERE m.user_id = $1 AND m.at >= $2 AND m.seen_at IS NULL
ORDER BY m.at DESC, m.comment_id
LIMIT {MAX_NOTICES}
"""
LEASE_LETTER = """
UPDATE mention_letter
SET lease = $1, lease_until = $2, tries = tries + 1
WHERE lease_until <= $3 AND user_id = (
    SELECT user_id FROM mention_letter WHERE due_at <= $3 AND lease_until <= $3 ORDER BY due_at, user_id LIMIT 1
)
RETURNING user_id, since, tries
"""
DELETE_LETTER = "DELETE FROM mention_letter WHERE user_id = $1 AND lease = $2"
POSTPONE_LETTER = "UPDATE mention_letter SET due_at = $3, lease_until = 0 WHERE user_id = $1 AND lease = $2"
# An e-mail that is being written may lack the newest mention. It therefore loses its lease and is written again.
_QUEUE_LETTER = """
INSERT INTO mention_letter (user_id, since, due_at, tries, lease, lease_until)
SELECT id, CAST($2 AS BIGINT), CAST($3 AS BIGINT), 0, '', 0
FROM "user"
WHERE id = $1 AND is_active = 1 AND email IS NOT NULL AND (letters IS NULL OR letters <> 'none')
ON CONFLICT (user_id) DO UPDATE SET tries = 0, lease = '', lease_until = 0
"""


class People(Protocol):
    """Reads the current rights of people."""

    async def person(self, reader: Reader, user_id: str) -> Caller | None:
        """Return the person with the person's current rights, or None if the person can no longer sign in."""
        ...


class MentionedPerson(msgspec.Struct):
    """A person as the caller sees it. `name` is empty if the caller does not read it in clear."""

    id: str
    username: str
    name: str | None = None


class Notice(NamedTuple):
    """A mention of the caller that the caller has not seen. `by` is empty if the caller does not see the author."""

    at: Instant
    model: str
    record_id: str
    comment_id: str
    by: str | None
    agent: str | None


class Subject(NamedTuple):
    """The record of a comment."""

    model: str
    record_id: str


class Mentions:
    """Notes the mentions of comments, and finds people who can be mentioned."""

    def __init__(self, people: People) -> None:
        self._people = people

    async def note(
        self, run: Run, comment_id: str, values: Mapping[str, Stored], values_before: Mapping[str, Stored]
    ) -> None:
        """Store the mentions of a comment that was written, and queue letters to the people who are mentioned for the
        first time.

        Raises:
            BadInput: a person mentions too many people, or somebody who does not see the record, or the record was
                deleted meanwhile.
        """
        if not values:
            await run.transaction.run(_REMOVE_ALL, comment_id)
            return
        if values.get("text") == values_before.get("text"):
            return
        subject = Subject(str(values["model"]), str(values["record"]))
        await _hold(run, subject, is_new=not values_before)
        author_id = str(values.get("author") or "")
        now = clock.now()
        if values.get("agent") is None:
            # A person who replies has seen the mentions.
            await run.transaction.run(call_log.SEE_MENTIONS, author_id, *subject, now)
        people = await _mentioned(run, str(values["text"]))
        known_ids = await _keep_mentions(run, comment_id, frozenset(person.id for person in people))
        new = [person for person in people if person.id not in known_ids and person.id != author_id]
        due_at = clock.later(now, seconds=run.engine.records.settings.plan_letter_s)
        for person in await self._notified(run, new, author_id, subject, MAX_MENTIONS - len(known_ids)):
            await run.transaction.run(_ADD, comment_id, person.id, author_id, *subject, now)
            await run.transaction.run(_QUEUE_LETTER, person.id, now, due_at)

    async def _notified(
        self, run: Run, people: Sequence[MentionedPerson], author_id: str, subject: Subject, room: int
    ) -> list[MentionedPerson]:
        """Return those of the people who are notified. For an agent, the others are left out."""
        row = await run.transaction.fetch_one(_RECENT, author_id, clock.later(clock.now(), seconds=-3_600))
        left = MAX_AN_HOUR - (0 if row is None else int(row[0]))
        is_told = bool(run.caller.view.models) and not run.caller.is_agent and run.writer_domain is None
        if is_told:
            _require_few(len(people), room, left)
        notified: list[MentionedPerson] = []
        for person in people[: max(min(room, left), 0)]:
            if await self._sees(run, person.id, *subject):
                notified.append(person)
            elif is_told:
                raise BadInput(
                    f"comment.text mentions @{person.username}, who does not see this record: take the mention out"
                )
        return notified

    async def _sees(self, run: Run, user_id: str, model: str, record_id: str) -> bool:
        """Return whether the person sees the record and its comments now."""
        caller = await self._people.person(run.reader, user_id)
        if caller is None or "comment" not in caller.view.models:
            return False
        view = caller.view.models.get(model)
        if view is None or not view.has_comments:
            return False
        return await unmask_input.exists(_as(run, caller), model, record_id)

    async def forget_person(
        self, run: Run, user_id: str, values: Mapping[str, Stored], values_before: Mapping[str, Stored]
    ) -> None:
        """Delete the mentions of a person who is deleted."""
        if not values:
            await run.transaction.run(_REMOVE_PERSON, user_id)

    async def people(self, run: Run, model: str, body: Body) -> list[MentionedPerson]:
        """Return people whom the caller sees, who see the record, and whose name contains the text `q`.

        Raises:
            BadInput: the input is malformed, or the record does not exist for the caller.
        """
        refuse_unknown_keys(body, ("model", "record", "q"), "comment.people")
        subject, record_id, text = (body.get(name, "") for name in ("model", "record", "q"))
        if not isinstance(subject, str) or not isinstance(record_id, str):
            raise BadInput("model and record must be strings")
        if not isinstance(text, str) or len(text) > _MAX_NAME or "\0" in text:
            raise BadInput(f"q must be a text of {_MAX_NAME} characters at most")
        unmask_input.refuse_tokens(run, text, "q")
        await comments.check_comment(run, {"model": subject, "record": record_id})
        found: list[MentionedPerson] = []
        for person in await _candidates(run, text):
            if len(found) < MAX_PEOPLE and await self._sees(run, person.id, subject, record_id):
                found.append(person)
        run.mentioned_models.add("user")
        return found


async def _hold(run: Run, subject: Subject, *, is_new: bool) -> None:
    """Lock the record of a new comment, so that a deletion at the same time deletes the comment as well.

    Raises:
        BadInput: the record was deleted meanwhile.
    """
    model = run.engine.registry.models.get(subject.model)
    if is_new and model is not None and model.table is None and run.dialect == "postgres":
        statement = f'SELECT 1 FROM "{model.name}" WHERE id = $1 FOR KEY SHARE'
        if await run.transaction.fetch_one(statement, subject.record_id) is None:
            raise no_such_record()


async def _keep_mentions(run: Run, comment_id: str, user_ids: frozenset[str]) -> frozenset[str]:
    """Delete the mentions of people whom the comment no longer mentions. Return the ids of the others."""
    known_ids = frozenset(row[0] for row in await run.transaction.fetch(_OF_COMMENT, comment_id))
    for user_id in sorted(known_ids - user_ids):
        await run.transaction.run(_REMOVE, comment_id, user_id)
    return known_ids & user_ids


def _require_few(count: int, room: int, left: int) -> None:
    """Require that a person mentions few people in one comment and in one hour."""
    if count > room:
        raise BadInput(f"comment.text mentions more than {MAX_MENTIONS} people: mention fewer of them")
    if count > left:
        raise BadInput(f"comment.text: you have mentioned {MAX_AN_HOUR} people in an hour; mention others later")


def _as(run: Run, caller: Caller) -> Run:
    """Return a reading run of another caller in the same transaction."""
    return Run(run.engine, caller, run.reader, run.actor, run.open_transaction)


async def _candidates(run: Run, text: str) -> list[MentionedPerson]:
    """Return active people whom the caller sees and whose user name or name contains the text."""
    view = run.caller.view.models.get("user")
    if view is None or "list" not in view.commands or not view.sees_in_clear("username"):
        return []
    searched = [name for name in ("username", "name") if view.sees_in_clear(name)]
    people: dict[str, MentionedPerson] = {}
    for field in searched if text else searched[:1]:
        query: Body = {"filter": _conditions(view, field, text), "order": [{"field": "username"}], "limit": MAX_CHECKED}
        for record in await list_search.records(run, "user", query):
            values: Mapping[str, Any] = msgspec.to_builtins(record)
            name = values.get("name") if "name" in searched else None
            people.setdefault(values["id"], MentionedPerson(values["id"], values["username"], name))
    needle = folded(text)
    return sorted(people.values(), key=lambda person: not folded(person.username).startswith(needle))[:MAX_CHECKED]


def _conditions(view: ModelView, field: str, text: str) -> list[dict[str, object]]:
    conditions: list[dict[str, object]] = [{"field": field, "op": "contains", "value": text}] if text else []
    if view.sees_in_clear("is_active"):
        conditions.append({"field": "is_active", "op": "eq", "value": True})
    return conditions


def written_names(text: str) -> list[list[str]]:
    """Return for each mention in the text the user names that it may mean, the longest first. User names may end with
    a full stop, and so may sentences."""
    mentions: list[list[str]] = []
    for match in _WORD.finditer(text):
        name = match[1]
        names = [folded(name)]
        while name and not name[-1].isalnum() and len(names) < _MAX_ENDINGS:
            name = name[:-1]
            names.append(folded(name))
        mentions.append([name for name in names if name])
        if len(mentions) == _MAX_WORDS:
            break
    return mentions


async def _mentioned(run: Run, text: str) -> list[MentionedPerson]:
    """Return the active people whom the caller sees and whom the text mentions."""
    mentions = written_names(text)
    by_name = await _people_by_name(run, sorted({name for mention in mentions for name in mention}))
    people = [next((by_name[name] for name in mention if name in by_name), None) for mention in mentions]
    return list({person.id: person for person in people if person is not None}.values())


async def _people_by_name(run: Run, names: Sequence[str]) -> dict[str, MentionedPerson]:
    """Map those of the user names, in folded form, that belong to active people whom the caller sees."""
    if not names:
        return {}
    places = ", ".join(f"${number}" for number in range(1, len(names) + 1))
    rows = await run.reader.fetch(_NAMED.format(places=places), *names)
    ids = {row[0] for row in rows}
    # When the service itself writes comments, for example demonstration data, the caller has no views.
    seen_ids = await audit_history.seen_people(run, ids) if run.caller.view.models else ids
    return {row[2]: MentionedPerson(row[0], row[1]) for row in rows if row[0] in seen_ids}


async def render(run: Run, values: Sequence[list[Any]], places: Mapping[str, int]) -> None:
    """Fill in the mentioned people of comments, as far as the caller sees them. Who is mentioned is part of the text:
    a caller who does not read the text does not see it."""
    if "mentions" not in places or not values:
        return
    people: dict[str, list[dict[str, str]]] = {}
    if run.view_of("comment").sees_in_clear("text"):
        people = await _people_of(run, [str(value[0]) for value in values])
    for value in values:
        value[places["mentions"]] = people.get(str(value[0]), [])


async def _people_of(run: Run, comment_ids: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """Map the ids of comments to the mentioned people whom the caller sees."""
    places = ", ".join(f"${number}" for number in range(1, len(comment_ids) + 1))
    rows = await run.reader.fetch(_OF_COMMENTS.format(places=places), *comment_ids)
    seen_ids = await audit_history.seen_people(run, {row[1] for row in rows})
    people: dict[str, list[dict[str, str]]] = {}
    for comment_id, user_id, username in rows:
        if user_id in seen_ids:
            people.setdefault(comment_id, []).append({"id": user_id, "username": username})
    return people


async def unseen(run: Run) -> list[Notice]:
    """Return the newest mentions of the calling person on records that the person sees and has not opened since."""
    since = clock.later(clock.now(), seconds=-NOTICE_DAYS * 86_400)
    rows = await run.reader.fetch(_UNSEEN, run.caller.user_id, since)
    ids_by_model: dict[str, set[str]] = {}
    for row in rows:
        ids_by_model.setdefault(row[1], set()).add(row[4])
    visible = {
        (model, record_id)
        for model, ids in ids_by_model.items()
        for record_id in await unmask_input.visible_ids(run, model, sorted(ids))
    }
    names = await audit_history.names_of(run, rows)
    return [
        Notice(row[0], row[1], row[4], row[6], names(row[5], row[2]), names(None, row[3]))
        for row in rows
        if (row[1], row[4]) in visible
    ]
