"""What a class declares about a model, and the defaults."""

import pytest

from countersign.declare import Bool, DeclarationError, LongText, Model, Move, Number, Select, Text, Workflow
from countersign.declare.model import EXTRA, GENERATED
from tests.declare.sample_modules import model


class GardenBed(Model):
    """A bed
    of plants."""

    area = Number()
    notes = LongText()
    title = Text()
    state = Select("bare", "sown", "grown")

    workflow = Workflow("state", sow=Move("bare", to="sown"), clear_out=Move("sown", "grown", to="bare", label="Clear"))


BED = GardenBed.declared


def test_the_name_is_the_class_name_in_snake_case_and_labels_follow_from_it() -> None:
    assert (BED.name, BED.label, BED.plural) == ("garden_bed", "Garden bed", "Garden beds")
    assert BED.summary == "A bed\nof plants."


def test_fields_keep_their_order_and_know_their_names() -> None:
    assert list(BED.fields) == ["area", "notes", "title", "state"]
    assert [field.name for field in BED.fields.values()] == ["area", "notes", "title", "state"]


def test_the_file_of_the_class_is_known() -> None:
    assert BED.source == __file__


def test_a_record_is_shown_by_its_first_text_or_its_id() -> None:
    assert BED.shown_as == "title"
    assert model("Bed", {"notes": LongText()}).declared.shown_as == "id"


def test_every_generated_command_exists_unless_commands_are_listed() -> None:
    assert BED.commands == GENERATED + EXTRA
    assert model("Bed", {"title": Text()}, commands=("get",)).declared.commands == ("get",)


def test_options_of_the_class_statement_take_precedence() -> None:
    plant = model("P", {"title": Text(), "code": Text()}, name="plant", label="Herb", plural="Herbage", shown_as="code")

    declared = plant.declared
    assert (declared.name, declared.label, declared.plural, declared.shown_as) == ("plant", "Herb", "Herbage", "code")


@pytest.mark.parametrize(
    ("label", "plural"),
    [
        *(("Party", "Parties"), ("Address", "Addresses"), ("Box", "Boxes"), ("Branch", "Branches")),
        *(("Day", "Days"), ("Lead", "Leads"), ("Dish", "Dishes")),
    ],
)
def test_the_plural_follows_the_usual_english_rules(label: str, plural: str) -> None:
    assert model("P", {"title": Text()}, label=label).declared.plural == plural


def test_the_error_for_a_missing_field_names_the_file_and_the_model() -> None:
    with pytest.raises(DeclarationError, match=r"test_model\.py: garden_bed has no field 'colour'"):
        BED.field("colour")


def test_actions_know_their_names_and_labels() -> None:
    assert BED.workflow is not None
    assert {name: (move.name, move.label) for name, move in BED.workflow.moves.items()} == {
        "sow": ("sow", "Sow"),
        "clear_out": ("clear_out", "Clear"),
    }


def test_the_action_between_two_states_is_found() -> None:
    workflow = BED.workflow
    assert workflow is not None

    move_found = workflow.between("grown", "bare")

    assert move_found is not None
    assert move_found.name == "clear_out"
    assert workflow.between("bare", "grown") is None


def test_a_field_derives_its_label_from_its_name_unless_a_label_is_declared() -> None:
    plant = model("Plant", {"is_active": Bool(), "tax_id": Text(label="Tax number")}).declared

    assert [field.label for field in plant.fields.values()] == ["Is active", "Tax number"]


def test_computed_and_total_fields_are_readonly_and_unique_fields_are_indexed() -> None:
    fields = model("P", {"a": Text(computed=str), "b": Number(sum_of="c.d"), "e": Text(unique=True)}).declared.fields

    assert [fields["a"].readonly, fields["b"].readonly, fields["e"].readonly] == [True, True, False]
    assert [fields["a"].index, fields["e"].index] == [False, True]


def test_labels_that_identify_people_are_linked_unless_the_field_declares_otherwise() -> None:
    assert Text(personal="EMAIL").linked
    assert not Text(personal="STREET").linked
    assert not Text(personal="EMAIL", linked=False).linked
    assert Text(personal="STREET", linked=True).linked
    assert not Text().linked
