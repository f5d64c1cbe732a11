"""Facts derived from all modules together: which models refer to which, what each total counts, which labels tokens
have."""

from countersign.declare import Grant, Module, Money, Ref, Role, Text
from countersign.declare.registry import Registry
from countersign.records import modules
from tests.declare.sample_modules import BASE, model, registry

SHIPPED = modules.found(["party", "crm", "billing", "helpdesk"])


def test_models_are_found_with_their_module() -> None:
    assert SHIPPED.module_of["lead"].name == "crm"
    assert SHIPPED.module_of["user"].name == "base"
    assert SHIPPED.models["lead"].fields["stage"].kind == "select"


def test_fields_that_refer_to_a_model_are_known_with_their_models() -> None:
    referrers = {(referrer.model.name, referrer.ref.name) for referrer in SHIPPED.referrers["party"]}

    assert referrers == {("address", "party"), ("lead", "party"), ("invoice", "party"), ("ticket", "party")}
    assert SHIPPED.referrers["activity"] == ()


def test_a_model_may_refer_to_itself() -> None:
    plant_registry = registry(model("Plant", {"title": Text(), "parent": Ref("plant")}))

    assert [(referrer.model.name, referrer.ref.name) for referrer in plant_registry.referrers["plant"]] == [
        ("plant", "parent")
    ]


def test_totals_are_found_by_their_counted_model() -> None:
    lines = {(total.parent.name, total.field, total.by, total.of) for total in SHIPPED.totals["invoice_line"]}

    assert lines == {("invoice", "net_minor", "invoice", "net_minor"), ("invoice", "tax_minor", "invoice", "tax_minor")}
    assert [total.field for total in SHIPPED.totals["payment"]] == ["paid_minor"]
    assert SHIPPED.totals["invoice"] == ()


def test_token_labels_are_those_of_personal_fields_and_literal() -> None:
    plant_registry = registry(model("Plant", {"title": Text(personal="PLANT"), "price_minor": Money()}))

    assert plant_registry.labels == {"PLANT", "LITERAL"}


def test_several_modules_may_grant_to_one_role() -> None:
    roles = [Role("gardener", Grant(model=name)) for name in ("plant", "bed")]
    plants = Module("plants", version="1", models=(model("Plant", {"a": Text()}),), roles=roles[:1])
    beds = Module("beds", version="1", models=(model("Bed", {"a": Text()}),), roles=roles[1:])

    merged_registry = Registry([BASE, plants, beds])

    assert [grant.model for role in merged_registry.roles["gardener"] for grant in role.grants] == ["plant", "bed"]
