"""Sales: leads, from the first contact until they are won or lost, and the activities that concern them."""

from countersign.declare import CALLER, Grant, Module, Role, where
from countersign.modules.crm.activity import Activity
from countersign.modules.crm.lead import Lead

CONTACT = ("contact_name", "contact_email", "contact_phone", "notes")
PLAIN = (
    "title",
    "stage",
    "expected_revenue_minor",
    "party",
    "owner",
    "source",
    "expected_close",
    "lost_reason",
)

SHARING = tuple(
    Grant(model=name, commands=("get",), write=("shared",), rows=(where("owner", eq=CALLER),))
    for name in ("view", "dashboard")
)
"""The right to share one's views and dashboards with everyone."""

module = Module(
    "crm",
    version="1.0.0",
    label="Sales",
    label_de="Vertrieb",
    icon="briefcase",
    needs=("party",),
    models=(Lead, Activity),
    roles=(
        Role(
            "sales_manager",
            *SHARING,
            Grant(model="lead", commands="*", clear="*", write="*"),
            Grant(model="activity", commands="*", clear="*", write="*"),
            Grant(model="user", clear=("username", "is_active")),
        ),
        Role(
            "clerk",
            Grant(
                model="lead",
                commands=("get", "list", "search", "create", "update", "count_by", "history", "qualify", "lose"),
                clear=PLAIN,
                masked=CONTACT,
                write=("title", "source", "expected_close", "party", "stage", "lost_reason", *CONTACT),
            ),
            Grant(
                model="activity",
                commands=("get", "list", "search", "create", "update", "finish"),
                clear=("lead", "kind", "subject", "due", "state"),
                masked=("notes",),
                write="*",
            ),
            Grant(model="user", clear=("username", "is_active")),
        ),
    ),
)
