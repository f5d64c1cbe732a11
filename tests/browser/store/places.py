"""All pages of the store in their states, and their visitors. A page that is not listed here fails
test_every_page.py."""

from tests.browser.visits import Place, Visitor

STORE = (
    Place("home", "/"),
    Place("browse", "/browse"),
    Place("found", "/browse?q=auror"),
    Place("found-none", "/browse?q=zzzzzzzz"),
    Place("narrowed", "/browse?org=toolsmith&kind=tool&sort=title"),
    Place("browse-list", "/browse?view=list"),
    Place("account", "/account"),
    Place("product", "/products/aurora-freight"),
    Place("product-of-many-releases", "/products/awl"),
    Place("product-of-others", "/products/brightwater-rally"),
    Place("product-missing", "/products/nothing-of-this-name"),
    Place("publisher-page", "/publishers/northwind-games"),
    Place("publisher-page-releases", "/publishers/northwind-games?tab=releases"),
    Place("publisher-page-about", "/publishers/northwind-games?tab=about"),
    Place("publisher-page-missing", "/publishers/nobody-of-this-name"),
    Place("library", "/library"),
    Place("library-list", "/library?view=list"),
    Place("library-own", "/library", (".card .get-more >> nth=0",)),
    Place("following", "/following"),
    Place("notifications", "/notifications"),
    Place("bell", "/redeem", (".bell > button",)),
    Place("redeem", "/redeem"),
    Place("ask", "/questions"),
    Place("asked", "/questions?q=Which%20tools%20run%20on%20Linux%3F"),
    Place("asked-partly", "/questions?q=Which%20shiny%20games%20run%20on%20Linux%3F&prev=games%0Afree%20ones"),
    Place("asked-in-vain", "/questions?q=How%20much%20does%20Aurora%20Freight%20cost%3F"),
    Place("asked-menu", "/questions?q=kind%3Dgame", ("button:has-text('Add filter')",)),
    Place("keys", "/keys"),
    Place("sandbox", "/keys", ("[role=switch]", ".sandbox .button >> nth=0")),
    Place("publisher", "/publisher"),
    Place("publisher-codes", "/publisher?tab=codes"),
    Place("publisher-usage", "/publisher?tab=usage"),
    Place("publisher-team", "/publisher?tab=team"),
    Place("new-product", "/publisher/new"),
    Place("managed-releases", "/publisher/products/awl"),
    Place("managed-details", "/publisher/products/awl?tab=details"),
    Place("managed-media", "/publisher/products/awl?tab=media"),
    Place("managed-release", "/publisher/products/awl/releases/0.3.0"),
    Place("keyboard", "/redeem", ("footer button",)),
    Place("design", "/design"),
    Place("nowhere", "/nowhere"),
    Place("publisher-webhooks", "/publisher?tab=webhooks"),
    Place("publisher-signing", "/publisher?tab=signing"),
)
STORE_VISITORS = (
    Visitor("nobody"),
    Visitor("customer", "player@example.com"),
    Visitor("owner", "publisher@example.com"),
    Visitor("viewer", "viewer@example.com"),
    Visitor("newcomer", "newcomer@example.com"),
    Visitor("german", "publisher@example.com", locale="de-DE"),
    Visitor("failing", "publisher@example.com", api="fails"),
    Visitor("waiting", "publisher@example.com", api="waits"),
)

GLANCES = ("/api/v1/health", "/api/v1/info", "/sandbox", "/sandbox/api/v1/health", "/sandbox/api/v1/telemetry")
"""Answers that may be asked for as a page."""

FORM_VISITORS = STORE_VISITORS[:2]
FORMS = (
    Place("sign-in", "/auth/signin"),
    Place("sign-up", "/auth/signup"),
    Place("reset", "/auth/reset"),
    Place("prove-spent", "/auth/prove?token=none"),
    Place("set-up-spent", "/auth/setup?token=none"),
    Place("claim-unknown", "/auth/claim?claim_attempt_token=none"),
    Place("agents", "/auth/agents"),
    Place("authorize-unknown", "/auth/authorize?client_id=nobody"),
    Place("problem", "/problems/resource-not-found"),
    *(Place(f"glance{path.replace('/', '-')}", f"{path}?format=html") for path in GLANCES),
)
"""Pages of forms and messages, which have no script. Their content for an existing invitation or agent is tested in
test_accounts.py and test_agents.py."""

READABLE = (
    Place("home", "/"),
    Place("browse", "/browse"),
    Place("product", "/products/aurora-freight"),
    Place("product-missing", "/products/nothing-of-this-name"),
    Place("publisher-page", "/publishers/northwind-games"),
)
"""The page before its script runs, and without scripts."""
