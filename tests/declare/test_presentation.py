"""How options, measures and actions are presented by default."""

import pytest

from countersign.declare import Model, Move, Option, Select, Text, Workflow
from countersign.records import modules
from countersign.records.commands import presentation
from tests.declare.sample_modules import model

SHIPPED = modules.found(["party", "crm", "billing", "helpdesk"])


def tones(select: Select, *, is_state: bool = True) -> list[str]:
    """Return the tones of all options."""
    return [select.tone(choice, is_state=is_state) for choice in select.choices]


def test_a_choice_is_a_word_or_an_option_with_labels() -> None:
    select = Select("in_stock", Option("lent", en="On loan", de="Verliehen"))

    assert select.options == ("in_stock", "lent")
    assert [choice.label for choice in select.choices] == [
        {"en": "In stock", "de": "In stock"},
        {"en": "On loan", "de": "Verliehen"},
    ]


def test_states_get_a_tone_by_position_and_name() -> None:
    assert tones(Select("new", "qualified", "proposed", "won", "lost")) == ["info", "cyan", "violet", "good", "bad"]
    assert tones(Select("draft", "a", "waiting", "b", "c", "d", "paid")) == [
        *("grey", "info", "warn", "cyan", "violet", "grey", "good")
    ]


def test_options_without_a_workflow_are_grey_unless_they_declare_a_colour() -> None:
    assert tones(Select("web", Option("fair", tone="info"), "won"), is_state=False) == ["grey", "info", "grey"]


class Door(Model):
    """A door."""

    title = Text()
    state = Select("open", "shut", "locked")
    workflow = Workflow(
        "state",
        close=Move("open", to="shut", verb="Close", label="Close the door", label_de="Schließen"),
        open_again=Move("shut", to="open"),
        lock=Move("shut", to="locked"),
        unlock=Move("locked", to="shut", clears=("title",)),
    )


def test_an_action_is_reversible_if_another_action_leads_back_and_no_field_is_emptied() -> None:
    workflow = Door.declared.workflow
    assert workflow is not None

    reversible_by_move = {name: workflow.is_reversible(move) for name, move in workflow.moves.items()}

    assert reversible_by_move == {"close": True, "open_again": True, "lock": True, "unlock": False}


def test_the_verb_is_the_label_unless_a_verb_is_declared() -> None:
    workflow = Door.declared.workflow
    assert workflow is not None

    assert workflow.moves["close"].verb == {"en": "Close", "de": "Close"}
    assert workflow.moves["lock"].verb == {"en": "Lock", "de": "Lock"}
    assert workflow.moves["close"].labels == {"en": "Close the door", "de": "Schließen"}


def test_the_title_is_the_field_that_represents_a_record() -> None:
    declaration = model("P", {"title": Text(), "code": Text()}, shown_as="code").declared

    assert (declaration.title_field, declaration.subtitle_fields, declaration.icon, declaration.group) == (
        "code",
        (),
        "",
        "",
    )


def test_every_shipped_model_has_an_icon_and_german_words() -> None:
    for name, item in SHIPPED.models.items():
        assert item.icon, name
        assert item.label_de, name
    lead = SHIPPED.models["lead"].fields["stage"]
    assert isinstance(lead, Select)
    assert [choice.label["de"] for choice in lead.choices][:2] == ["Neu", "Qualifiziert"]


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2026-01-01", "2026-04-01"),
        ("2026-06-30", "2026-07-01"),
        ("2026-09-15", "2026-10-01"),
        ("2026-12-31", "2027-01-01"),
    ],
)
def test_the_next_quarter_begins_after_the_quarter_of_a_day(day: str, expected: str) -> None:
    assert presentation.next_quarter(day) == expected
