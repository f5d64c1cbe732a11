"""Equipment: things that we own and lend to customers and partners."""

from countersign.declare import Date, Grant, Model, Module, Move, Ref, Role, Select, Text, Work, Workflow


async def clear_loan(work: Work) -> None:
    """Clear the fields that describe the loan."""
    await work.change(borrower=None, contact=None, due=None)


class Equipment(Model, plural="Equipment"):
    """A thing that we own and lend."""

    title = Text(required=True, index=True)
    serial = Text(unique=True, max_length=40, label="Serial number")
    state = Select("in_stock", "lent", "scrapped", index=True)
    borrower = Ref("party", on_delete="clear")
    contact = Text(personal="PERSON", help="The person who has it")
    due = Date(index=True, help="The day on which it must be returned")

    workflow = Workflow(
        "state",
        lend=Move("in_stock", to="lent", inputs=("borrower", "contact", "due"), help="Hand it out."),
        take_back=Move("lent", to="in_stock", effect=clear_loan, help="It was returned undamaged."),
        scrap=Move("in_stock", "lent", to="scrapped", needs_approval=True, help="It is lost or beyond repair."),
    )


module = Module(
    "equipment",
    version="1.0.0",
    needs=("party",),
    models=(Equipment,),
    roles=(
        Role(
            "storekeeper",
            Grant(model="equipment", commands="*", clear="*", write="*"),
            Grant(model="party", clear=("kind",), masked=("name",)),
        ),
    ),
)
