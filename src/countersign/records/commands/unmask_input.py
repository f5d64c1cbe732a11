"""Converts a caller's JSON to stored values: checks fields and lengths, and replaces placeholder tokens with their
values."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from countersign.declare import BadValue, Declared, Field, LongText, Ref, Text
from countersign.declare.fields.field import LITERAL, Stored
from countersign.declare.fields.text import MAX_LONGTEXT_LENGTH, MAX_TEXT_LENGTH
from countersign.kernel import ids
from countersign.records.access.view import Domain, ModelView
from countersign.records.commands import filters, select
from countersign.records.commands.errors import BadInput, unknown_field
from countersign.records.commands.filters import Parameters
from countersign.records.commands.prepared_command import FieldInput
from countersign.records.commands.run import Run
from countersign.records.commands.select import StoredRecord
from countersign.records.masking import placeholder_tokens
from countersign.records.masking.placeholder_tokens import PlaceholderToken

MAX_GROWN_LENGTH = 8 * MAX_LONGTEXT_LENGTH
"""The number of characters up to which a masked caller can always append to a long text.

Above this length, the probability of a refusal grows, and a text of twice this length is always refused. A fixed limit
would reveal the length of the existing text.
"""


def require_fitting(
    field: Text,
    text: str,
    tokens: Sequence[PlaceholderToken],
    meanings: Mapping[str, str],
    long_labels: frozenset[str],
) -> None:
    """Require that the text fits the field, before its tokens are replaced.

    A text that consists of one token always fits, because the token's value was checked when it was written. In any
    other text, each token counts as the longest single-line text. One token of a long text is an exception: its own
    length counts. An agent can therefore append to notes without learning their length.

    Raises:
        BadValue: the text does not fit.
    """
    is_one_token = [token.text for token in tokens if token.label != LITERAL] == [text]
    _require_labels(field, [token for token in tokens if token.label in long_labels])
    if not is_one_token:
        _require_length(field, text, tokens, meanings, long_labels)


def _require_labels(field: Text, long_tokens: Sequence[PlaceholderToken]) -> None:
    if long_tokens and not isinstance(field, LongText):
        raise BadValue(f"takes no placeholder token of a long text ({long_tokens[0].label})")
    if len(long_tokens) > 1:
        raise BadValue("may hold one placeholder token of a long text")


def _require_length(
    field: Text,
    text: str,
    tokens: Sequence[PlaceholderToken],
    meanings: Mapping[str, str],
    long_labels: frozenset[str],
) -> None:
    counted_length = len(text) + sum(_counted(token, meanings, long_labels) - len(token.text) for token in tokens)
    if counted_length > field.max_length:
        raise BadValue(
            f"must have {field.max_length} characters at most, a placeholder token counting as {MAX_TEXT_LENGTH}"
        )
    length = len(text) + sum(len(meanings[token.text]) for token in tokens)
    if length > MAX_GROWN_LENGTH and length > MAX_GROWN_LENGTH + int.from_bytes(ids.random_bytes(8)) % MAX_GROWN_LENGTH:
        raise BadValue("has grown too long: write it anew")


def _counted(token: PlaceholderToken, meanings: Mapping[str, str], long_labels: frozenset[str]) -> int:
    if token.label in long_labels:
        return len(token.text)
    return len(meanings[token.text]) if token.label == LITERAL else MAX_TEXT_LENGTH


_VALUE = "SELECT id, label, domain_id, hash FROM pii_value WHERE id = $1"
# In a field with an alias of the domain, the agent may have written the value as a guess.
_SEEN = """
SELECT p.model, p.field, p.record_id
FROM seen_place AS p
WHERE p.value_id = $1 AND p.domain_id = $2 AND NOT EXISTS (
    SELECT 1
    FROM pii_alias AS a
    WHERE a.model = p.model AND a.record_id = p.record_id AND a.field = p.field AND a.domain_id = p.domain_id
        AND a.hash = $3
)
ORDER BY p.model, p.field
"""
_SEEN_BY_ALL = """
SELECT DISTINCT p.value_id, v.hash, p.model, p.field, p.record_id
FROM seen_place AS p
JOIN token_domain AS d ON d.id = p.domain_id
JOIN pii_value AS v ON v.id = p.value_id
WHERE p.value_id IN ({places})
ORDER BY p.value_id, p.model, p.field, p.record_id
"""
_LITERAL = "SELECT text FROM literal WHERE value_id = $1"
_ALIASED_BY_ANY = "SELECT model, record_id, field, hash FROM pii_alias WHERE value_id = $1"
_ALIASED = f"{_ALIASED_BY_ANY} AND domain_id = $2"
_ALIASES_OF_ALL = "SELECT value_id, model, record_id, field, hash FROM pii_alias WHERE value_id IN ({places})"
_ALIASES = f"{_ALIASES_OF_ALL} AND domain_id = $1"
_VALUE_IN_PLAN = """
SELECT v.sealed
FROM plan_value AS v
JOIN plan AS p ON p.id = v.plan_id
WHERE v.value_id = $1 AND p.state = 'pending' AND p.person = $2 AND p.agent = $3
"""


async def read_fields(
    run: Run, view: ModelView, body: Mapping[str, object], *, inputs: frozenset[str] = frozenset()
) -> dict[str, FieldInput]:
    """Return the fields of an input in declared order. `inputs` names the inputs of an action: a caller may set them if
    it sees them, even if it may not write them otherwise.

    Raises:
        BadInput: a field is unknown or hidden (the error is the same in both cases) or read-only for the caller, a
            value does not fit its field, or a placeholder token is invalid or not allowed in its field.
    """
    for name in body:
        if name not in inputs or name not in view.fields:
            _require_writable(view, name)
    return {name: await _value(run, view, view.model.fields[name], body[name]) for name in view.fields if name in body}


def _require_writable(view: ModelView, name: str) -> None:
    field = view.model.fields.get(name)
    if field is None or name not in view.fields:
        raise unknown_field(view.model.name, name)
    if field.readonly or name not in view.writable:
        raise BadInput(f"{view.model.name}.{name} is read-only")


async def _value(run: Run, view: ModelView, field: Field, value: object) -> FieldInput:
    name = f"{view.model.name}.{field.name}"
    if value is None or _is_blank(field, value):
        if field.required:
            raise BadInput(f"{name} is required")
        return FieldInput(None)
    is_masked = view.fields[field.name] == "masked"
    field_input = FieldInput(None)
    if isinstance(value, str) and run.caller.view.is_masked:
        is_connected = view.model.table is not None
        value, field_input = await _replaced(run, field, value, name, is_masked=is_masked, is_connected=is_connected)
    try:
        stored_value = _stored(field, value, field_input)
    except BadValue as error:
        raise BadInput(f"{name} {error}") from error
    if isinstance(field, Ref) and not await exists(run, field.target, cast(str, stored_value)):
        raise BadInput(f"{name} must be the id of a {field.target} record")
    return FieldInput(
        stored_value,
        field_input.value_id,
        _is_plain_text(run, field, field_input, is_masked=is_masked),
        field_input.origins,
    )


def _is_blank(field: Field, value: object) -> bool:
    """Return whether the value is a blank text and the field has a format. A blank text then means no value."""
    return isinstance(field, Text) and field.has_format and isinstance(value, str) and not value.strip()


def _stored(field: Field, value: object, field_input: FieldInput) -> Stored:
    """Return the value as stored.

    For a text with tokens, `require_fitting` has checked the length before the tokens were replaced, and the format is
    not checked. The writer therefore learns neither the length of the replaced text nor whether it matches the format
    of the field.
    """
    return field.of_any_length(value) if field_input.origins and isinstance(field, Text) else field.read(value)


def _is_plain_text(run: Run, field: Field, field_input: FieldInput, *, is_masked: bool) -> bool:
    """Return whether a masked caller wrote the value in clear. This includes linked fields (which keep a value id) that
    the caller reads in clear, because fields computed from them may be masked."""
    return field_input.value_id is None and (is_masked or (field.linked and run.caller.view.is_masked))


async def exists(run: Run, model: str, record_id: str) -> bool:
    """Return whether the record exists and the caller may see it. The steps are the same for hidden and missing
    records."""
    view = run.caller.view.models.get(model)
    if view is None or not view.is_readable or not record_id:
        return False
    if record_id in run.created:
        return run.created[record_id] == model
    if view.model.table is not None:
        record_reader = run.engine.reading(run.caller, view)
        return await run.read_one(record_reader, select.one(record_reader, view.visible, record_id)) is not None
    parameters = Parameters(record_id)
    scope = filters.Scope(run.engine.dialect, parameters, "t")
    visible_condition = filters.any_of(scope, view.model, view.visible)
    text = f'SELECT 1 FROM "{model}" AS t WHERE t.id = $1 AND {visible_condition}'
    return await run.reader.fetch_one(text, *parameters.values) is not None


async def seen_record(run: Run, view: ModelView, record: StoredRecord) -> StoredRecord:
    """Return the record with its refs as the caller sees them. A ref to a record that the caller may not see is
    empty."""
    values = dict(record.values)
    for name in view.fields:
        field, value = view.model.fields[name], values[name]
        if isinstance(field, Ref) and isinstance(value, str) and not await _sees_target(run, view.model, field, value):
            values[name] = None
    return replace(record, values=values)


async def _sees_target(run: Run, model: Declared, ref: Ref, record_id: str) -> bool:
    """Return whether the caller may see the record to which a stored ref of the model refers. A foreign key ensures
    that it exists, so that it is not read for a caller who sees all records of its model."""
    view = run.caller.view.models.get(ref.target)
    has_foreign_key = model.table is None and run.engine.registry.models[ref.target].table is None
    if has_foreign_key and view is not None and view.is_readable and view.visible is None:
        return True
    return await exists(run, ref.target, record_id)


def changed_fields(
    view: ModelView, record: StoredRecord, field_inputs: Mapping[str, FieldInput]
) -> dict[str, FieldInput]:
    """Return the given fields without those that do not change from the caller's point of view.

    A ref that the caller sees as empty and sends as empty does not change. If a hidden ref were emptied, the change
    would reveal that it exists. A linked value that a masked caller reads in clear and sends again does not change
    either. Any other value that a masked caller writes in clear counts as changed.
    """
    return {
        name: field_input
        for name, field_input in field_inputs.items()
        if not _is_unchanged(view, record, name, field_input)
    }


def _is_unchanged(view: ModelView, record: StoredRecord, name: str, field_input: FieldInput) -> bool:
    if field_input.stored != record.values[name]:
        return False
    if isinstance(view.model.fields[name], Ref):
        return field_input.stored is None
    return field_input.is_plain_text and view.sees_in_clear(name)


async def visible_ids(run: Run, model: str, record_ids: Sequence[str]) -> frozenset[str]:
    """Return the ids of the records that the caller may see. The ids are not checked if the caller sees all records of
    the model."""
    view = run.caller.view.models.get(model)
    if view is None or not view.is_readable:
        return frozenset()
    if view.visible is None:
        return frozenset(record_ids)
    if view.model.table is not None:
        record_reader = run.engine.reading(run.caller, view)
        query = select.Query(filter=(filters.Condition("id", "in", list(record_ids)),))
        rows = await run.read_all(record_reader, select.page(record_reader, view.visible, query))
        return frozenset(row[0] for row in rows)
    parameters = Parameters()
    scope = filters.Scope(run.engine.dialect, parameters, "t")
    places = ", ".join(parameters.put(record_id) for record_id in record_ids)
    visible_condition = filters.any_of(scope, view.model, view.visible)
    text = f'SELECT t.id FROM "{model}" AS t WHERE t.id IN ({places}) AND {visible_condition}'
    return frozenset(row[0] for row in await run.reader.fetch(text, *parameters.values))


async def revisions(run: Run, view: ModelView, record_ids: Sequence[str]) -> dict[str, int]:
    """Map the ids of those records that exist for the caller to their stored revisions."""
    store = run.engine.adopted.get(view.model.name)
    if store is not None:
        async with run.writing() as write_run:
            return await store.revisions(write_run, view, record_ids)
    parameters = Parameters()
    scope = filters.Scope(run.engine.dialect, parameters, "t")
    places = ", ".join(parameters.put(record_id) for record_id in record_ids)
    visible_condition = filters.any_of(scope, view.model, view.visible)
    text = f'SELECT t.id, t.revision FROM "{view.model.name}" AS t WHERE t.id IN ({places}) AND {visible_condition}'
    return dict(await run.reader.fetch(text, *parameters.values))


async def _replaced(
    run: Run, field: Field, text: str, name: str, *, is_masked: bool, is_connected: bool
) -> tuple[str, FieldInput]:
    """Return the text in which all tokens are replaced by their values in a single pass."""
    grammar = run.engine.grammar
    if not grammar.might_hold_token_or_near_miss(text):
        return text, FieldInput(None)
    text_tokens = grammar.tokens(text)
    labels = {token.label for token in text_tokens}
    if not labels <= (_allowed(field, labels) if is_masked else {LITERAL}):
        raise BadInput(f"token not allowed in {name}")
    if is_masked:
        _refuse_near_miss(run, text)
    _require_alone(field, text, text_tokens, name, is_connected=is_connected)
    meanings_by_token = await _resolved(run, text_tokens)
    meanings = {token: meaning[1] for token, meaning in meanings_by_token.items()}
    _require_fitting(run, field, text, text_tokens, meanings, name)
    replaced = placeholder_tokens.replace_tokens(grammar, text, meanings)
    origins = tuple(meanings_by_token[token.text][0] for token in text_tokens if token.label != LITERAL)
    return replaced, FieldInput(None, _link(text, text_tokens, field, origins), False, origins)


def _require_alone(
    field: Field, text: str, tokens: Sequence[PlaceholderToken], name: str, *, is_connected: bool
) -> None:
    """Require that a token is the whole text of a field with a format, and of a short text of a connected table.
    Otherwise the response would reveal whether the token's value, combined with the other text, matches the format or
    fits the column."""
    has_format = isinstance(field, Text) and field.has_format
    is_whole = has_format or (is_connected and not isinstance(field, LongText))
    if is_whole and any(token.label != LITERAL for token in tokens) and tokens[0].text != text:
        raise BadInput(f"{name} takes one placeholder token and nothing else, or a value in clear")


async def _resolved(run: Run, tokens: Sequence[PlaceholderToken]) -> dict[str, tuple[int, str]]:
    """Map the text of each token to its value id and its value. Each different token is looked up once."""
    different = {token.text: token for token in tokens}
    return {text: await resolve(run, token) for text, token in different.items()}


def _require_fitting(
    run: Run, field: Field, text: str, tokens: Sequence[PlaceholderToken], meanings: Mapping[str, str], name: str
) -> None:
    try:
        if isinstance(field, Text):
            require_fitting(field, text, tokens, meanings, run.engine.registry.long_labels)
    except BadValue as error:
        raise BadInput(f"{name} {error}") from error


def _refuse_near_miss(run: Run, text: str) -> None:
    """Refuse a mistyped token, because it could no longer be resolved after it is stored."""
    miss = run.engine.grammar.near_miss(text)
    if miss:
        raise BadInput(f"{miss} is no placeholder token: write tokens exactly as they were given to you")


def _link(text: str, tokens: Sequence[PlaceholderToken], field: Field, origins: Sequence[int]) -> int | None:
    """Return the value id of the token if the field is linked and the text is exactly one token with the label of the
    field. The stored value then keeps the value id."""
    own_tokens = [token.text for token in tokens if token.label == field.personal]
    return origins[0] if field.linked and own_tokens == [text] else None


def _allowed(field: Field, labels_found: set[str]) -> set[str]:
    """Return the labels that a masked field accepts: its own label and LITERAL. Free text accepts any label."""
    return labels_found if isinstance(field, LongText) else {field.personal or "", LITERAL}


async def resolve(run: Run, token: PlaceholderToken) -> tuple[int, str]:
    """Return the value id and the text of one of the caller's own tokens.

    Raises:
        BadInput: the token is unknown, belongs to another domain or has another label, or no record that the caller
            sees contains its value.
    """
    masks = run.masks
    if masks is None or token.number >= 1 << 48:
        raise _unknown(run, token)
    value_id = masks.value_id(token.number)
    if token.label == LITERAL:
        row = await run.reader.fetch_one(_LITERAL, value_id)
        text = None if row is None else cast(str, row[0])
    else:
        text = await _text_of(run, token.label, value_id)
    if text is None:
        raise _unknown(run, token)
    return value_id, text


def _unknown(run: Run, token: PlaceholderToken) -> BadInput:
    run.engine.token_guesses.count(run.caller)
    is_connected = any(
        view.model.table is not None and view.model.fields[name].personal == token.label
        for view in run.caller.view.models.values()
        for name in view.fields
    )
    return BadInput(f"unknown token {token.text}" + (": read the record again with get" if is_connected else ""))


async def _text_of(run: Run, label: str, value_id: int) -> str | None:
    row = await run.reader.fetch_one(_VALUE, value_id)
    if row is None or row[1] != label:
        return None
    domain = run.caller.domain
    if row[2] is not None and (domain is None or row[2] != domain.id):
        return None
    text = await _text_stored(run, value_id, label, None if row[2] is None else domain)
    if text is None and row[3] is not None:
        text = await _text_seen(run, value_id, label, bytes(row[3]))
    return await _text_in_plan(run, value_id) if text is None else text


async def _text_stored(run: Run, value_id: int, label: str, domain: Domain | None) -> str | None:
    """Return the text of a value from a record of our own tables that the caller sees. `domain` is that of an alias."""
    aliased = [] if domain is None else await run.reader.fetch(_ALIASED, value_id, domain.id)
    for alias in aliased:
        text = await _text_of_alias(run, label, *alias)
        if text is not None:
            return text
    for model, field in fields_labelled(run, label):
        text = await text_in(run, model, field, f"{field}__value", value_id)
        if text is not None:
            return text
    return None


async def _text_of_alias(
    run: Run,
    label: str,
    model: str,
    record_id: str,
    field: str,
    value_hash: bytes | None,
    *,
    in_clear: bool = False,
) -> str | None:
    """Return the text of an alias from its record, or None if the caller does not see it there, with `in_clear` if it
    does not read it in clear. A record of our own has no `value_hash`."""
    if value_hash is None:
        view = run.caller.view.models.get(model)
        is_readable = view is not None and (view.sees_in_clear(field) or not in_clear)
        return await text_in(run, model, field, "id", record_id) if is_readable else None
    return await _seen_text(run, SeenPlace(model, field, record_id), label, bytes(value_hash), in_clear=in_clear)


class SeenPlace(NamedTuple):
    """A field of a record in a connected table in which an agent has seen a value."""

    model: str
    field: str
    record_id: str


async def _text_seen(run: Run, value_id: int, label: str, value_hash: bytes) -> str | None:
    """Return the text of a value of a connected table from the first record in which the caller still sees it."""
    domain = run.caller.domain
    for place in [] if domain is None else await _seen_places(run, value_id, domain.id, value_hash):
        text = await _seen_text(run, place, label, value_hash)
        if text is not None:
            return text
    return None


async def _seen_places(run: Run, value_id: int, domain_id: str, value_hash: bytes) -> list[SeenPlace]:
    return [SeenPlace(*row) for row in await run.reader.fetch(_SEEN, value_id, domain_id, value_hash)]


async def _seen_text(
    run: Run, place: SeenPlace, label: str, value_hash: bytes, *, in_clear: bool = False
) -> str | None:
    """Return the text of the value if the record still has it and the caller sees the field, with `in_clear` only if it
    reads the field in clear. The text is read now, because no value of a connected table is stored."""
    view = run.caller.view.models.get(place.model)
    store = run.engine.adopted.get(place.model)
    field = place.field if view is None else view.model.present_name(place.field)
    if view is None or store is None or not view.is_readable or field not in view.fields:
        return None
    if view.model.fields[field].personal != label or (in_clear and not view.sees_in_clear(field)):
        return None
    return await store.text_with_hash(run, view, place.record_id, field, value_hash)


async def places_with_value(run: Run, value_id: int) -> list[SeenPlace]:
    """Return the fields of connected tables in which the caller's domain has seen the value and still sees it."""
    row = await run.reader.fetch_one(_VALUE, value_id)
    if row is None or row[3] is None or run.caller.domain is None:
        return []
    places = await _seen_places(run, value_id, run.caller.domain.id, bytes(row[3]))
    return [place for place in places if await _seen_text(run, place, row[1], bytes(row[3])) is not None]


async def places_of_alias(run: Run, value_id: int, label: str) -> list[SeenPlace]:
    """Return the fields with this alias of any domain that the caller sees."""
    return [
        SeenPlace(model, field, record_id)
        for model, record_id, field, value_hash in await run.reader.fetch(_ALIASED_BY_ANY, value_id)
        if await _text_of_alias(run, label, model, record_id, field, value_hash) is not None
    ]


def fields_labelled(run: Run, label: str) -> list[tuple[str, str]]:
    """Return the models and fields that have the label and that the caller sees."""
    return [
        (view.model.name, name)
        for view in run.caller.view.stored.values()
        for name in view.fields
        if view.model.fields[name].personal == label and view.model.fields[name].is_maskable
    ]


async def value_ids_in(run: Run, label: str, value_ids: Sequence[int]) -> frozenset[int]:
    """Return the ids of those values that a record visible to the caller contains. Occurrences in hidden records are
    not revealed."""
    occurring_ids = await _occurring_in(run, value_ids, fields_labelled(run, label))
    if run.caller.domain is not None:
        parameters = Parameters(run.caller.domain.id)
        text = _ALIASES.format(places=", ".join(parameters.put(value_id) for value_id in value_ids))
        for value_id, *alias in await run.reader.fetch(text, *parameters.values):
            if await _text_of_alias(run, label, *alias) is not None:
                occurring_ids.add(value_id)
    return frozenset(occurring_ids)


async def readable_value_ids(run: Run, label: str, value_ids: Sequence[int], *, in_clear: bool) -> frozenset[int]:
    """Return the ids of those values that a field visible to the caller contains. The values may belong to any domain.
    With `in_clear`, only fields that the caller reads in clear count."""
    readable_fields = [
        (model, field)
        for model, field in fields_labelled(run, label)
        if not in_clear or run.view_of(model).sees_in_clear(field)
    ]
    occurring_ids = await _occurring_in(run, value_ids, readable_fields)
    places = ", ".join(f"${number}" for number in range(1, len(value_ids) + 1))
    aliases = await run.reader.fetch(_ALIASES_OF_ALL.format(places=places), *value_ids)
    for value_id, *alias in aliases:
        if await _text_of_alias(run, label, *alias, in_clear=in_clear) is not None:
            occurring_ids.add(value_id)
    missing_ids = [value_id for value_id in value_ids if value_id not in occurring_ids]
    return frozenset(occurring_ids | await _seen_anywhere(run, label, missing_ids, in_clear=in_clear))


async def _seen_anywhere(run: Run, label: str, value_ids: Sequence[int], *, in_clear: bool) -> set[int]:
    """Return the ids of those values that records of connected tables have in which any domain has seen them."""
    seen_ids: set[int] = set()
    places = ", ".join(f"${number}" for number in range(1, len(value_ids) + 1))
    rows = await run.reader.fetch(_SEEN_BY_ALL.format(places=places), *value_ids) if value_ids else []
    for value_id, value_hash, *place in rows:
        if value_id not in seen_ids and value_hash is not None:
            text = await _seen_text(run, SeenPlace(*place), label, bytes(value_hash), in_clear=in_clear)
            seen_ids |= set() if text is None else {value_id}
    return seen_ids


async def _occurring_in(run: Run, value_ids: Sequence[int], among_fields: Sequence[tuple[str, str]]) -> set[int]:
    """Return the ids of those values that occur in one of these fields in a record visible to the caller."""
    occurring_ids: set[int] = set()
    for model, field in among_fields:
        parameters = Parameters()
        scope = filters.Scope(run.engine.dialect, parameters, "t")
        places = ", ".join(parameters.put(value_id) for value_id in value_ids)
        view = run.view_of(model)
        visible_condition = filters.any_of(scope, view.model, view.visible)
        column, shown_condition = f't."{field}__value"', _shows_own(run, view, field, parameters)
        text = (
            f'SELECT DISTINCT {column} FROM "{model}" AS t WHERE {column} IN ({places}) AND '
            f'{visible_condition}{shown_condition}'
        )
        occurring_ids |= {row[0] for row in await run.reader.fetch(text, *parameters.values)}
    return occurring_ids


def _shows_own(run: Run, view: ModelView, field: str, parameters: Parameters) -> str:
    """Return an SQL condition that excludes records whose field has an alias (a value id of one domain) in the caller's
    domain. Such a field contains text that the caller wrote in clear. If such a record counted as an occurrence, an old
    token could become valid again and confirm a guess."""
    if run.caller.domain is None or view.fields[field] != "masked" or not view.model.fields[field].linked:
        return ""
    names = (view.model.name, field, run.caller.domain.id)
    model, name, domain = (parameters.put(name) for name in names)
    return (
        f" AND NOT EXISTS (SELECT 1 FROM pii_alias AS own WHERE own.model = {model} AND own.record_id = t.id "
        f"AND own.field = {name} AND own.domain_id = {domain})"
    )


async def text_in(run: Run, model: str, field: str, order_field: str, value: str | int) -> str | None:
    """Return the clear text of a field in a record that the caller may see, or None if there is no such record."""
    view = run.caller.view.models.get(model)
    if view is None or field not in view.fields:
        return None
    parameters = Parameters(value)
    scope = filters.Scope(run.engine.dialect, parameters, "t")
    visible_condition = filters.any_of(scope, view.model, view.visible)
    shown_condition = "" if order_field == "id" else _shows_own(run, view, field, parameters)
    text = (
        f'SELECT t."{field}" FROM "{model}" AS t WHERE t."{order_field}" = $1 AND '
        f'{visible_condition}{shown_condition} LIMIT 1'
    )
    row = await run.reader.fetch_one(text, *parameters.values)
    return None if row is None else cast("str | None", row[0])


async def contains_value(run: Run, model: str, field: str, record_id: str | None, value_id: int) -> bool:
    """Return whether the field of the record with this id contains the value."""
    text = f'SELECT 1 FROM "{model}" WHERE id = $1 AND "{field}__value" = $2'
    return record_id is not None and await run.reader.fetch_one(text, record_id, value_id) is not None


async def _text_in_plan(run: Run, value_id: int) -> str | None:
    """Return the text of the value if a pending plan of the same agent contains it."""
    if run.caller.agent is None:
        return None
    row = await run.reader.fetch_one(_VALUE_IN_PLAN, value_id, run.caller.user_id, run.caller.agent)
    if row is None:
        return None
    keys = await run.engine.vault.keys(run.reader, [value_id])
    return run.engine.vault.unseal(keys[value_id], row[0]) if value_id in keys else None


def refuse_tokens(run: Run, text: str, place_name: str) -> None:
    """Refuse tokens in a text that is never unmasked, such as a reason, a label or the value of a filter.

    Raises:
        BadInput: the caller is masked, and the text contains a token.
    """
    grammar = run.engine.grammar
    if run.caller.view.is_masked and grammar.might_hold_token(text) and grammar.tokens(text):
        raise BadInput(f"token not allowed in {place_name}")
