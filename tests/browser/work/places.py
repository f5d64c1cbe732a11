"""All pages of the work app in their states, and their visitors. A page that is not listed here fails
test_every_page.py."""

from tests.browser.visits import Place, Visitor

MORE = "main [aria-label='More']"
"""The menu of rarely used actions of a record."""

WORK = (
    Place("home", "/"),
    Place("sign-in", "/signin"),
    Place("list", "/models/lead"),
    Place("list-empty", '/models/lead?filter=[{"field":"title","op":"eq","value":"no such lead"}]'),
    Place("list-filter", "/models/lead", ("#panel-filter",)),
    Place("list-sorting", "/models/lead?order=-title", ("#panel-sort",)),
    Place("list-columns", "/models/lead", ("#panel-columns",)),
    Place("list-views", "/models/lead", ("#panel-views",)),
    Place("list-parties", "/models/party"),
    Place("list-invoices", "/models/invoice"),
    Place("audit", "/models/audit_entry"),
    Place("list-missing", "/models/none"),
    Place("new", "/models/lead/new"),
    Place("new-faulty", "/models/lead/new", ("button:text-is('Create')",)),
    Place("import", "/models/lead/import"),
    Place("board", "/models/lead/board"),
    Place("record", "/models/lead/records/{lead}"),
    Place("record-party", "/models/party/records/{party}"),
    Place("record-invoice", "/models/invoice/records/{invoice}"),
    Place("record-missing", "/models/lead/records/00000000-0000-0000-0000-000000000000"),
    Place("record-edit", "/models/lead/records/{lead}", (MORE, "[role=menuitem]:has-text('Edit')")),
    Place("delete", "/models/lead/records/{lead}", (MORE, "[role=menuitem]:has-text('Delete')")),
    Place("approvals", "/approvals"),
    Place("approvals-decided", "/approvals?state=decided"),
    Place("approvals-reject", "/approvals", ("#reject",)),
    Place("agents", "/agents"),
    Place("agents-new", "/agents?new=1"),
    Place("users", "/users"),
    Place("roles", "/users?view=roles"),
    Place("data-map", "/data"),
    Place("users-invite", "/users", ("button:text-is('Invite a person')",)),
    Place("dashboard", "/dashboard"),
    Place("dashboard-table", "/dashboard?board=crm&period=custom", (".widget .end button >> nth=0",)),
    Place("dashboard-edit", "/dashboard?dashboard={dashboard}&edit=1"),
    Place("dashboard-add", "/dashboard?dashboard={dashboard}&edit=1", ("button:has-text('Add a tile')",)),
    Place("connect", "/connect"),
    Place("account", "/account"),
    Place("log", "/audit"),
    Place("log-entry", "/audit/{audit_entry}"),
    Place("palette", "/dashboard", (".side-search",)),
    Place("design", "/design"),
    Place("nowhere", "/nowhere"),
    Place("set-up-spent", "/setup?token=none"),
)
WORK_VISITORS = (
    Visitor("nobody"),
    Visitor("manager", "alice"),
    Visitor("clerk", "bob"),
    Visitor("accountant", "carol"),
    Visitor("administrator", "root"),
    Visitor("german", "alice", locale="de-DE"),
    Visitor("failing", "alice", api="fails"),
    Visitor("waiting", "alice", api="waits"),
)
