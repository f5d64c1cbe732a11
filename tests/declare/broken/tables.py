"""Models with a table of an existing database that break a rule."""

from countersign.declare import Field, Model, Moment, Money, Move, Ref, Select, Table, Text, Workflow, where
from countersign.declare.rules import tables
from countersign.declare.rules.declarations import Rule
from tests.declare.sample_modules import BrokenModules, model, models_case


def table_model(name: str = "Plant", table: Table | None = None, **fields: Field) -> type[Model]:
    """Return a model with a table."""
    return model(name, fields or {"title": Text()}, table=table or Table("public.plant", key="id"))


def table_case(remedy: str, table: Table) -> BrokenModules:
    """Return a case of one wrong table."""
    return models_case(tables.tables_are_named, "plant.table", remedy, table_model(table=table))


def column_case(remedy: str, wrong_field: Field, rule: Rule = tables.columns_are_valid) -> BrokenModules:
    """Return a case of one wrong field of a model with a table of its own."""
    return models_case(rule, "plant.a", remedy, model("Plant", {"title": Text(), "a": wrong_field}))


def computed(title: str) -> str:
    """Return a value of a computed field."""
    return title


STATE = Select("new", "done", unknown="other")
WRITTEN = Table("plant", key="id", writable=True)


def workflow_case(
    place: str,
    remedy: str,
    state: Select = STATE,
    *,
    move: Move | None = None,
    rule: Rule = tables.workflows_over_columns_are_valid,
    table: Table = WRITTEN,
) -> BrokenModules:
    """Return a case of a workflow over a column."""
    workflow = Workflow("state", finish=move or Move("new", to="done"))
    attributes: dict[str, Field | Workflow] = {"title": Text(), "state": state, "workflow": workflow}
    return models_case(rule, place, remedy, model("Plant", attributes, table=table))


LOCKED = model("Plant", {"title": Text()}, table=Table("plant", key="id"), locked=(where("title", is_null=True),))
WRITABLE = model("Plant", {"title": Text()}, table=Table("plant", key="id"), commands=("get", "update"))
BED = model("Bed", {"title": Text()})
READING = model("Plant", {"title": Text()}, table=Table("plant", key="id", writable=True), reads=("bed",))

CASES: list[BrokenModules] = [
    table_case("write it like", Table("a.b.c", key="id")),
    table_case("write it like", Table('"', key="id")),
    table_case("write it like", Table("", key="id")),
    table_case("different columns", Table("plant", key=())),
    table_case("different columns", Table("plant", key=("a", "a"))),
    models_case(tables.tables_have_their_commands, "plant.commands", "name some of get, list", WRITABLE),
    models_case(tables.tables_have_their_commands, "plant", "take locks, rules", LOCKED),
    models_case(tables.tables_have_their_commands, "plant", "take locks, rules", READING),
    workflow_case("plant", "writable=True", rule=tables.tables_have_their_commands, table=Table("plant", key="id")),
    workflow_case("plant.state", "unknown=", Select("new", "done")),
    workflow_case("plant.state", "not the first", Select("new", unknown="new")),
    workflow_case("plant.finish", "stands for all other values", Select("new", "done", unknown="new")),
    workflow_case("plant.finish", "has no effect", move=Move("new", to="done", reads=("plant",))),
    models_case(
        tables.tables_have_their_commands,
        "plant.a",
        "no computed fields",
        table_model(title=Text(), a=Text(computed=computed)),
    ),
    column_case("take them out", Text(column="b")),
    column_case("take them out", Text(sortable=False)),
    column_case("take them out", Ref("plant", columns="b")),
    column_case("take them out", Select(values={0: "draft"})),
    table_case("take deletes out", Table("plant", key="id", deletes=True)),
    table_case("version needs writable=True", Table("plant", key="id", version="changes")),
    table_case("not in the key", Table("plant", key="id", writable=True, version="id")),
    table_case("deleted needs a column", Table("plant", key="id", deleted="id")),
    table_case("deleted needs a column", Table("plant", key="id", writable=True, version="a", deleted="a")),
    models_case(
        tables.tables_have_their_commands,
        "plant.a",
        "marks deleted rows",
        table_model(table=Table("plant", key="id", deleted="a"), a=Moment()),
    ),
    models_case(
        tables.tables_have_their_commands,
        "plant.a",
        "counts versions",
        table_model(table=Table("plant", key="id", writable=True, version="a"), a=Text()),
    ),
    models_case(
        tables.written_tables_have_one_model,
        "flower.table",
        "plant and flower write one table, public.plant: take writable out of one",
        table_model(table=WRITTEN),
        table_model("Flower", Table("public.plant", key="id", writable=True)),
    ),
    table_case("contains NUL or half of a surrogate pair", Table("plant", key="k\ud800")),
    models_case(tables.columns_named_validly, "plant.a", "contain NUL", table_model(a=Text(column="a\0b"))),
    models_case(
        tables.columns_named_validly, "plant.a", "half of a surrogate pair", table_model(a=Text(label="\ud800"))
    ),
    models_case(tables.columns_are_valid, "plant.a_minor", "scale must lie", table_model(a_minor=Money(scale=5))),
    models_case(tables.columns_are_valid, "plant.a", "no time zone", table_model(a=Moment(zone="Nowhere/City"))),
    models_case(tables.tables_refer_to_tables, "plant.bed", "not in one database", table_model(bed=Ref("bed")), BED),
    models_case(
        tables.tables_refer_to_tables,
        "plant.bed",
        "the key of bed has 2 columns",
        table_model(bed=Ref("bed", columns="bed_id")),
        table_model("Bed", Table("bed", key=("a", "b"))),
    ),
]
