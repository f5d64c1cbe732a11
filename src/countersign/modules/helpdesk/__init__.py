"""Help desk: tickets with dates by which we promise to answer and to solve."""

from countersign.declare import Grant, Module, Role
from countersign.modules.helpdesk.ticket import Ticket

REQUESTER = ("requester_name", "requester_email", "description")

module = Module(
    "helpdesk",
    version="1.0.0",
    label="Help desk",
    label_de="Helpdesk",
    icon="ticket",
    needs=("party",),
    models=(Ticket,),
    roles=(
        Role("sales_manager", Grant(model="ticket", commands="*", clear="*", write="*")),
        Role(
            "clerk",
            Grant(
                model="ticket",
                commands=(
                    "get", "list", "search", "create", "update", "count_by", "history",
                    "start", "wait", "solve", "close", "reopen",
                ),
                clear=(
                    "subject", "party", "state", "priority", "opened", "respond_by", "solve_by", "assignee",
                    "resolution",
                ),
                masked=REQUESTER,
                write="*",
            ),
        ),
    ),
)  # fmt: skip
