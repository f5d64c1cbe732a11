"""A wrong type in a module text is a declaration error that names the option, and never another exception."""

import inspect
from collections.abc import Iterator
from itertools import chain

import pytest

from countersign import declare
from countersign.declare import DeclarationError, text
from countersign.declare.fields.field import FieldOptions
from countersign.declare.model import ModelOptions
from countersign.declare.registry import Registry
from countersign.records import base_models

VALUES = (
    '"45"', "5", "-5", "None", "True", '("a",)', "(1,)", '{"a": 1}', '{1: "a"}', "Text()", 'Table("x", key="id")',
    "TODAY", "()", '""', 'where("a", eq=1)', 'Option("a", "b")', '(("a",),)', '{"a": Text()}', '{("a", {}): 1}',
)  # fmt: skip
BOLT, ID = '"bolt"', '"id"'
FIELDS = {
    **dict.fromkeys(("Bool", "Text", "LongText", "Number", "Money", "Decimal", "Date", "Moment"), ""),
    **{"Select": '"x", ', "Ref": '"party", '},
}


def source(field: str = "Text()", options: str = "", module: str = "") -> str:
    """Return a module text with one model."""
    return f'''class Bolt(Model{options}):
    a = Text()
    n = Number()
    tried = {field}
module = Module("shelf", version="1.0.0", models=(Bolt,){module})
'''


def load(module_text: str) -> None:
    """Read, build and check a module text."""
    Registry((base_models.MODULE, text.build(text.read(module_text), "a.py")))


def field_options(function_name: str) -> list[str]:
    """Return the options of a field."""
    names = [parameter.name for parameter in inspect.signature(getattr(declare, function_name)).parameters.values()]
    return [*(name for name in names if name not in ("options", "choices", "target")), *FieldOptions.__annotations__]


def call(function_name: str, **options: str) -> str:
    """Return the source of a call."""
    return f"{function_name}({', '.join(f'{name}={option}' for name, option in options.items())})"


def wrong_models(value: str) -> Iterator[str]:
    """Yield module texts in which each option of a model or a field has the value."""
    for function_name, leading_arguments in FIELDS.items():
        for option in field_options(function_name):
            yield source(f"{function_name}({leading_arguments}{option}={value})")
    yield from (source(options=f", {option}={value}") for option in ModelOptions.__annotations__)
    for option in ("relation", "key", "fingerprint", "rows_about"):
        yield source(options=f", table={call('Table', **{'relation': BOLT, 'key': ID, option: value})}")
    for name in ("a", "n"):
        yield from (
            source(options=f', rules=(where("{name}", {operator}={value}),)') for operator in ("eq", "in_", "gt")
        )


def wrong_modules(value: str) -> Iterator[str]:
    """Yield module texts in which each option of the module or a grant has the value."""
    for option in ("label", "icon", "needs", "roles", "settings", "kinds", "search_path", "session"):
        yield source(module=f", {option}={value}")
    for option in ("model", "commands", "clear", "masked", "write", "rows"):
        yield source(module=f', roles=(Role("reader_x", {call("Grant", **{"model": BOLT, option: value})}),)')


def test_the_texts_without_a_wrong_value_are_valid() -> None:
    load(source())
    load(source(options=', table=Table("public.bolt", key="id")'))
    load(source(module=', roles=(Role("reader_x", Grant(model="bolt", masked="*")),)'))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_wrong_value_is_a_declaration_error_or_accepted() -> None:
    refused_count = 0
    for module_text in chain(chain.from_iterable(map(wrong_models, VALUES)), *map(wrong_modules, VALUES)):
        try:
            load(module_text)
        except DeclarationError:
            refused_count += 1
    assert refused_count > 2_000


@pytest.mark.parametrize(
    ("module_text", "error"),
    [
        (source('Text(max_length="45")'), r"Text\(…\): max_length must be a whole number: correct the call"),
        (source("Text(max_length=True)"), "max_length must be a whole number"),
        (source("Text(personal=5)"), "personal must be text"),
        (source("Text(required=1)"), "required must be True or False"),
        (source('Ref("party", on_delete="drop")'), "on_delete must be one of 'refuse', 'clear', 'cascade'"),
        (source("Ref(5)"), "target must be text"),
        (source("Select(5)"), r"choices must be text or Option\(…\)"),
        (source('Select("a", values={"x": 5})'), "values must be a dictionary"),
        (source(options=", table=Table(5, key=5)"), "relation must be text"),
        (source(options=', table=Table("bolt", key=5)'), "key must be text or a list, and each of its values text"),
        (source(options=', table="bolt"'), r"Bolt: table must be Table\(…\)"),
        (source(options=', commands="list"'), "commands must be a list, and each of its values text"),
        (source(module=", roles=(5,)"), r"roles must be a list, and each of its values Role\(…\)"),
        (source(module=', search_path="public"'), "search_path must be a list"),
        (source(module=', session=("app.tenant", "user.tenant")'), "session must be a dictionary"),
        (source("Text(default={(1,): 2})"), "a key of a dictionary is neither text nor a number"),
    ],
)
def test_the_error_names_the_option_and_the_expected_value(module_text: str, error: str) -> None:
    with pytest.raises(DeclarationError, match=error):
        load(module_text)
