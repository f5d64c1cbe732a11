"""Fields that break a rule, one case for each possible mistake."""

from collections.abc import Callable
from typing import cast

from countersign.declare import (
    CALLER,
    TODAY,
    Bool,
    Date,
    LongText,
    Model,
    Module,
    Moment,
    Money,
    Number,
    Ref,
    Role,
    Select,
    Structure,
    Text,
)
from countersign.declare.fields.kinds import OnDelete
from countersign.declare.rules import computed_fields, fields
from tests.declare.sample_modules import BrokenModules, field_case, model, models_case, nursery


def doubled(title: str) -> str:
    """Computed from an existing field."""
    return title * 2


def first(nickname: str) -> str:
    """Computed from a missing field."""
    return nickname[0]


def nothing() -> str:
    """Computed from nothing."""
    return ""


def by_keyword(*, title: str) -> str:
    """Declares its source as a keyword argument, which the engine does not pass."""
    return title


def of_a(a: int) -> int:
    """One half of a cycle."""
    return a


def of_b(b: int) -> int:
    """Return the other half."""
    return b


def misspelt(**options: object) -> Text:
    """Return a field whose author misspelt an argument."""
    return cast("Callable[..., Text]", Text)(**options)


def showing(hidden_field: Text) -> type[Model]:
    """Return a model with a computed field over a hidden one."""
    return model("Plant", {"title": hidden_field, "shown": Text(computed=doubled)})


GARDENER = (Role("gardener"), Role("owner"))
SOIL = Module("soil", version="1.0.0", models=(model("Bed", {"title": Text()}),))
BED = model("Bed", {"title": Text(), "area": Number(sum_of="plant.area"), "shown": Number()})

CASES: list[BrokenModules] = [
    field_case(fields.options_are_known, "correct it to one of label", misspelt(personl="PERSON")),
    field_case(fields.kinds_fit_module, "use Date", Moment()),
    field_case(fields.kinds_fit_module, "use Date", Structure()),
    field_case(fields.unique_values_are_exact, "use unique_with", Text(unique=True, format="reference")),
    field_case(fields.money_named, "call it price_minor", Money(), name="price"),
    field_case(fields.ranges_not_empty, "correct them", Number(min_value=2, max_value=1)),
    field_case(fields.ranges_not_empty, "correct them", Number(max_value=2**53)),
    field_case(fields.ranges_not_empty, "or use LongText", Text(max_length=1001)),
    field_case(fields.ranges_not_empty, "correct it", LongText(max_length=0)),
    field_case(fields.options_plain_words, "name them", Select()),
    field_case(fields.options_plain_words, "take one out", Select("tall", "small", "tall")),
    field_case(fields.options_plain_words, "rename it", Select("tall", "")),
    field_case(fields.options_plain_words, "rename it", Select("it's tall")),
    models_case(
        fields.options_plain_words,
        "plant.height",
        "rename it",
        model("Plant", {"title": Text(personal="PERSON"), "height": Select("person_1")}),
    ),
    field_case(fields.long_text_not_indexed, "use Text", LongText(unique=True)),
    field_case(fields.long_text_not_indexed, "use Text", LongText(index=True)),
    field_case(fields.defaults_are_valid, "correct it", Number(default="12")),
    field_case(fields.defaults_are_valid, "correct it", Select("tall", default="small")),
    field_case(fields.defaults_are_valid, "correct it", Text(required=True, default=" ")),
    field_case(fields.defaults_are_valid, "correct it", Bool(default=1)),
    field_case(fields.defaults_are_valid, "can have it", Text(default=CALLER)),
    field_case(fields.defaults_are_valid, "can have it", Text(default=TODAY)),
    field_case(fields.defaults_are_valid, "no default but CALLER", Ref("user", default="0" * 24)),
    field_case(fields.defaults_are_valid, "take it out", Text(computed=doubled, default="a")),
    field_case(fields.required_can_be_met, "give it a default", Date(required=True, readonly=True)),
    field_case(fields.required_can_be_met, "take required out", Text(required=True, computed=doubled)),
    field_case(fields.personal_labelled, "write it like EMAIL", Text(personal="email")),
    field_case(fields.personal_labelled, "write it like EMAIL", Text(personal="E_MAIL")),
    field_case(fields.personal_labelled, "write it like EMAIL", Text(personal="")),
    field_case(fields.personal_labelled, "choose another", Text(personal="LITERAL")),
    field_case(fields.personal_labelled, "restrict it to roles", Date(personal="BIRTHDAY")),
    field_case(fields.linked_is_personal, "give it a label", Text(linked=True)),
    field_case(fields.linked_is_personal, "linked=False", LongText(personal="PERSON")),
    field_case(fields.restricted_to_roles, "or declare it", Text(restricted=("gardner",)), roles=GARDENER),
    field_case(fields.ref_targets_exist, "switch on the module", Ref("bed")),
    BrokenModules(
        fields.ref_targets_exist,
        (nursery(model("Plant", {"bed": Ref("bed")})), SOIL),
        "plant.bed",
        "add 'soil' to needs",
    ),
    field_case(fields.on_delete_possible, "refuse or cascade", Ref("user", required=True, on_delete="clear")),
    field_case(fields.refs_fill_fields, "name a field of plant and one of user", Ref("user", fills={"title": "size"})),
    models_case(
        fields.refs_fill_fields,
        "plant.gardener",
        "one kind other than ref",
        model("Plant", {"height": Number(), "gardener": Ref("user", fills={"height": "username"})}),
    ),
    BrokenModules(
        fields.refs_fill_fields,
        (
            nursery(
                model("Bed", {"title": Text(), "owner": Text(personal="PERSON")}),
                model("Plant", {"title": Text(), "bed": Ref("bed", fills={"title": "owner"})}),
            ),
        ),
        "plant.bed",
        "has other readers",
    ),
    field_case(fields.on_delete_possible, "correct it", Ref("user", on_delete=cast("OnDelete", "forget"))),
    field_case(computed_fields.sources_are_fields, "name parameters after fields", Text(computed=first)),
    field_case(computed_fields.sources_are_fields, "name the fields", Text(computed=nothing)),
    field_case(computed_fields.sources_are_fields, "plain parameter", Text(computed=by_keyword)),
    models_case(
        computed_fields.sources_are_fields,
        "bed.area",
        "take one out",
        model("Bed", {"title": Text(), "area": Number(sum_of="plant.area", computed=doubled)}),
        model("Plant", {"bed": Ref("bed"), "area": Number()}),
    ),
    field_case(computed_fields.total_sources_valid, "write model.field", Number(sum_of="leaf.size")),
    field_case(computed_fields.total_sources_valid, "write model.field", Number(sum_of="plant")),
    models_case(computed_fields.total_sources_valid, "bed.area", "correct it", BED, model("Plant", {"area": Number()})),
    models_case(
        computed_fields.total_sources_valid,
        "bed.area",
        "correct it",
        BED,
        model("Plant", {"area": Number(), "bed": Ref("bed"), "second": Ref("bed")}),
    ),
    models_case(
        computed_fields.total_sources_valid,
        "bed.area",
        "correct its kind",
        BED,
        model("Plant", {"area": Text(), "bed": Ref("bed")}),
    ),
    models_case(
        computed_fields.totals_neither_personal_nor_unique,
        "bed.area",
        "take that out",
        model("Bed", {"area": Number(sum_of="plant.area", unique=True)}),
        model("Plant", {"area": Number(), "bed": Ref("bed")}),
    ),
    models_case(
        computed_fields.totals_neither_personal_nor_unique,
        "bed.shown",
        "take that out",
        model("Bed", {"title": Number(sum_of="plant.area"), "shown": Text(computed=doubled, personal="BED")}),
        model("Plant", {"area": Number(), "bed": Ref("bed")}),
    ),
    field_case(computed_fields.declassified_fields_derived, "grant it", Text(declassify=True)),
    models_case(
        computed_fields.computed_fields_acyclic,
        "plant.a",
        "break the circle",
        model("Plant", {"a": Number(computed=of_b), "b": Number(computed=of_a)}),
    ),
    models_case(
        computed_fields.computed_fields_acyclic,
        "plant.a",
        "break the circle",
        model("Plant", {"a": Number(sum_of="plant.b"), "b": Number(computed=of_a), "parent": Ref("plant")}),
    ),
    models_case(
        computed_fields.derived_fields_as_secret_as_sources,
        "plant.shown",
        "make it personal too",
        showing(Text(personal="PERSON")),
    ),
    models_case(
        computed_fields.derived_fields_as_secret_as_sources,
        "plant.shown",
        "restrict it",
        showing(Text(restricted=("owner",))),
        roles=GARDENER,
    ),
    models_case(
        computed_fields.derived_fields_as_secret_as_sources,
        "plant.shown",
        "restrict it",
        model(
            "Plant",
            {
                "title": Text(restricted=("owner",)),
                "shown": Text(computed=doubled, restricted=("owner", "gardener")),
            },
        ),
        roles=GARDENER,
    ),
    models_case(
        computed_fields.derived_fields_as_secret_as_sources,
        "bed.area",
        "restrict it",
        BED,
        model("Plant", {"area": Number(restricted=("owner",)), "bed": Ref("bed")}),
        roles=GARDENER,
    ),
]
