"""Module texts: what is written is read again, and reading runs no code and has bounds."""

import gc
import string
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.declare import DeclarationError, Module, Ref, Select, Text, text
from countersign.declare.registry import Registry
from countersign.declare.text import (
    WORDS,
    Call,
    Comment,
    Dictionary,
    FieldText,
    ModelText,
    ModuleText,
    Name,
    TextError,
    printable,
)
from countersign.records import base_models

SHOP = '''"""A shop."""

from countersign.declare import Grant, Model, Module, Option, Ref, Role, Select, Table, Text, where


# The customers.

class Customer(Model, table=Table("public.customer", key="customer_id", rows_about=599)):
    """A customer."""

    # 1 trigger: last_updated (BEFORE UPDATE)
    name = Text(required=True, max_length=45, personal="PERSON")  # name
    store = Ref("store", columns="store_id")
    state = Select(
        Option("new", "New", "Neu"),
        Option("on_hold", "on hold"),
        values={"on hold": "on_hold", 0: "new"},
        unknown="other",
        required=True,
    )
    # password: left out: secret


class Store(Model, table=Table("public.store", key=("a", "b"))):
    title = Text(column="Straße")


# public.log: left out: no key


module = Module(
    "shop",
    version="1.0.0",
    models=(Customer, Store),
    roles=(Role("shop_reader", Grant(model="customer", masked="*", rows=(where("name", ne="x"),))),),
    search_path=("public",),
    session={"app.tenant": "user.tenant"},
)
'''


def test_a_text_becomes_the_objects_that_a_package_declares() -> None:
    module = text.build(text.read(SHOP.replace('("a", "b")', '"a"')), "shop.py")

    registry = Registry((base_models.MODULE, module))
    customer = registry.models["customer"]
    assert isinstance(module, Module)
    assert (module.source, customer.source, customer.summary) == ("shop.py", "shop.py", "A customer.")
    assert customer.table is not None
    assert customer.table.rows_about == 599
    name, store, state = (customer.fields[item] for item in ("name", "store", "state"))
    assert isinstance(name, Text)
    assert (name.personal, name.required, name.max_length) == ("PERSON", True, 45)
    assert isinstance(store, Ref)
    assert store.columns == ("store_id",)
    assert isinstance(state, Select)
    assert state.options == ("new", "on_hold", "other")
    assert registry.models["store"].fields["title"].table_columns == ("Straße",)
    assert registry.session == {"app.tenant": "user.tenant"}
    assert registry.roles["shop_reader"][0].grants[0].rows[0].operator == "ne"


def test_reading_and_writing_keep_comments_and_order() -> None:
    assert text.write(text.read(SHOP)) == SHOP


def test_comments_keep_their_tabs_blanks_and_joiners() -> None:
    comment = "ticket:\tGDPR-17\u00a0Bob said\u00adno \U0001f468\u200d\U0001f469"
    source = f'from countersign.declare import Module\n\n\n# {comment}\n\n\nmodule = Module("shop", version="1.0.0")\n'

    assert f"# {comment}\n" in text.write(text.read(source))
    assert "# a\ufffdb\n" in text.write(text.read(source.replace(comment, "a\u202eb")))


def test_a_comment_inside_a_call_stays_before_the_field() -> None:
    source = SHOP.replace("    state = Select(\n", "    state = Select(\n        # the states\n")

    body = text.read(source).models[0].body

    assert body[3] == Comment("the states")
    assert isinstance(body[4], FieldText)


@pytest.mark.parametrize(
    "line",
    [
        'open("x", "w")',
        '__import__("os")',
        "import os",
        "from os import system",
        "from countersign.declare import Model as M",
        "from countersign.declare import Field",
        "x = 1 + 1",
        "x = [y for y in ()]",
        "x = lambda: 1",
        "def f(): pass",
        "@property\nclass A(Model): pass",
        "class A(Model, Text): pass",
        "class A(Model):\n    a = Text().__class__",
        "class A(Model):\n    a = Text()()",
        "class A(Model):\n    a = (Text)(max_length=3)",
        'class A(Model):\n    a = Text(label=f"{1}")',
        'class A(Model):\n    a = Text(label=b"x")',
        'class A(Model):\n    a = Text(**{"label": "x"})',
        'class A(Model):\n    a = Text(label="x", label="y")',
        'class A(Model):\n    a = "x".join(())',
        "class A(Model):\n    a = Text",
        "class A(Model):\n    a = BadValue()",
        "class A(Model):\n    class B(Model):\n        a = Text()",
        "class A(Model):\n    a = b = Text()",
        "class A(Model):\n    a: int = Text()",
        "class A(Model):\n    a = Text(default=1.5)",
        "class A(Model):\n    a = Text(default=0x10)",
        "class A(Model):\n    a = Text(default=- - 1)",
        "class A(Model):\n    a = Text(default={}[0])",
        "module = Module('twice', version='1')",
        "while True: pass",
    ],
)
def test_anything_but_declarations_is_refused(line: str) -> None:
    with pytest.raises(TextError):
        text.read(f'from countersign.declare import Model, Module, Text\n{line}\nmodule = Module("a", version="1")\n')


@pytest.mark.parametrize(
    "source",
    [
        "x = " + "(" * 30 + ")" * 30,
        "x = " + "-" * 10_000 + "1",
        "x = Text" + "()" * 10_000,
        "x = a" + ".b" * 10_000,
        "x = a" + "[0]" * 10_000,
        "x = " + "1 if " * 10_000,
        "x = " + "not " * 10_000 + "1",
        "x = " + "9" * 10_000,
        "x = " + "1 + " * 10_000 + "1",
        "x = " + "a, " * (text.MAX_TOKENS // 2 + 1),
        "#" * (text.MAX_BYTES + 1),
        "\0",
        "x = '",
        "x = (",
        "\ud800",
        "class A(Model):\n" + "".join(" " * depth + "class A(Model):\n" for depth in range(1, 90)),
    ],
    ids=str,
)
def test_a_text_beyond_the_bounds_is_refused_before_it_is_parsed(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countersign.declare.text.ast.parse", None)

    with pytest.raises(TextError):
        text.read(source)


def test_several_threads_read_texts_at_a_time() -> None:
    models = "".join(f"class M{at}(Model):\n    a = Text(label='A', where=('b', ('c', 'd')))\n" for at in range(40))
    source = f"from countersign.declare import Model, Module, Text\n{models}module = Module('shop')\n"

    def give_way(_phase: str, _info: dict[str, int]) -> None:
        time.sleep(0.0005)

    # While garbage is collected during a parse, another thread runs.
    gc.callbacks.append(give_way)
    try:
        with ThreadPoolExecutor(8) as threads:
            module_texts = list(threads.map(text.read, [source] * 200))
    finally:
        gc.callbacks.remove(give_way)

    assert {each.module for each in module_texts} == {module_texts[0].module}


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("from countersign.declare import check\n", "check is for code, which only a package can have"),
        ('class A(Model):\n    @check("a")\n    def b(a): pass\n', "line 2: a module text has no code: remove it, or"),
    ],
)
def test_code_is_refused_with_the_remedy(source: str, error: str) -> None:
    with pytest.raises(TextError, match=error):
        text.read(f'{source}module = Module("a", version="1")\n')


def test_an_error_names_the_line() -> None:
    with pytest.raises(TextError, match="line 2: "):
        text.read('"""A."""\nimport os\n')


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("a = Number(max_length=3)", "max_length"),
        ("a = Number(3, 4)", "Number"),
        ("a = Text()\n    a = Text()", "twice"),
        ("a = Text(default=Nothing)", "Nothing"),
    ],
)
def test_options_that_do_not_fit_are_declaration_errors(line: str, error: str) -> None:
    source = f'class A(Model):\n    {line}\nmodule = Module("a", version="1", models=(A,))\n'

    with pytest.raises(DeclarationError, match=error):
        Registry((base_models.MODULE, text.build(text.read(source), "a.py")))


HOSTILE = ['"); import os #', '"""', "'''", "\\", "a\nb", "\0", "\ud800", "#", "{}", "\r", "\x85", "\u2028"]
TEXTS = st.one_of(st.text(), st.sampled_from(HOSTILE), st.text(st.sampled_from("\"'\\\n#(){}[]")))
NAMES = st.text(string.ascii_lowercase, min_size=3, max_size=8).map(lambda text: f"x_{text}")
CLASSES = NAMES.map(str.title).map(lambda text: text.replace("_", ""))
COMMENTS = TEXTS.map(printable)
CALLS = sorted(set(WORDS) - {"CALLER", "TODAY", "NEXT_QUARTER", "ADMINISTRATOR", "EQUALITY", "RANGES"})
NUMBERS = st.integers(-(10**18), 10**18)
SIMPLE = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS, st.sampled_from([Name("TODAY"), Name("CALLER")]))
VALUES = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.lists(st.tuples(TEXTS, inner), max_size=3).map(tuple).map(Dictionary),
        st.builds(Call, st.sampled_from(CALLS), st.lists(inner, max_size=3).map(tuple), st.just(())),
    ),
    max_leaves=8,
)
OPTIONS = st.lists(st.tuples(NAMES, VALUES), max_size=3, unique_by=lambda text: text[0]).map(tuple)
ALL_CALLS = st.builds(Call, st.sampled_from(CALLS), st.lists(VALUES, max_size=3).map(tuple), OPTIONS)
BODIES = st.lists(st.one_of(st.builds(Comment, COMMENTS), st.builds(FieldText, NAMES, ALL_CALLS, COMMENTS)), max_size=5)
MODELS = st.builds(ModelText, CLASSES, OPTIONS, TEXTS, BODIES.map(tuple))
MODULES = st.builds(
    ModuleText,
    TEXTS,
    st.lists(st.one_of(MODELS, st.builds(Comment, COMMENTS)), max_size=4).map(tuple),
    st.builds(Call, st.just("Module"), st.lists(VALUES, max_size=2).map(tuple), OPTIONS),
)


@settings(max_examples=300, deadline=timedelta(seconds=60))
@given(MODULES)
def test_formatted_module_text_parses_to_the_same_declaration(module: ModuleText) -> None:
    assert text.read(text.write(module)) == module


@given(st.text(st.sampled_from("()[]{}.,=:-#'\" \n\tclass Text(Model) module 0from"), max_size=60))
def test_any_text_is_read_or_refused(source: str) -> None:
    try:
        module = text.read(source)
    except TextError:
        return
    assert text.read(text.write(module)) == module
