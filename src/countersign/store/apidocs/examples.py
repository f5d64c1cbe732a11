"""Examples that match their schemas. If a table lists a value for the name of a member or parameter, the example is
this value. Otherwise the example is made from the schema."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from countersign.store.apidocs.schemas import Document

ID = "01890a5d-ac96-774b-bcce-b302099a8057"
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
JWT = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln"
ROOT = "https://store.example"
BASE = f"{ROOT}/api/v1"
SIGNATURE = "gDaYvhWjPqH4rQdnYd0XmVf0W2mS0d0m3bYxk0JmB4Cqv3o1qg5b6e7v8w9x0y1z2A3B4C5D6E7F8G9H0I1J2A=="
PUBLIC_KEY = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
KEY = "csk_agent_4s5vB8mQk2TzYw7xN1rPf6Hc3JdLgA9e"
CLAIM_TOKEN, REGISTRATION = "clm_Zr3x8vK1mQ5tYw7N2bPf6Hc4JdLgA9eS", "reg_01890a5dac96774bbcceb302099a8057"
ATTEMPT_PAGE = f"{ROOT}/auth/claim?claim_attempt_token=cat_Wm4k9pT2vX6sQ8yN"
CURSOR = "eyJ2IjoxfQ.c2lnbmF0dXJl"

OMITTED = object()
"""The value of a member that the example of an object omits."""

NAMED: Mapping[str, object] = {
    "id": ID,
    "slug": "star-harbour",
    "title": "Star Harbour",
    "description": "Trade, drift and repair at the edge of the map.",
    "name": "Northwind Games",
    "org": "northwind-games",
    "version": "1.4.0",
    "from": "1.3.0",
    "from_version": "1.3.0",
    "to_version": "1.4.0",
    "notes": "Fixes a crash at the start.",
    "tags": ["strategy", "space"],
    "tag": "strategy",
    "q": "harbour",
    "query": "Which games run on Linux?",
    "answer": "Star Harbour runs on Linux.",
    "query_id": "question-1",
    "site": "store.example",
    "prev": "Which games are there?",
    "decontextualized_query": "Which games run on Linux?",
    "mode": "list",
    "generate_mode": "list",
    "platforms": ["windows", "linux"],
    "platform": "linux",
    "kind": "game",
    "channel": "stable",
    "status": "public",
    "summary": "Trade, drift and repair at the edge of the map.",
    "homepage": "https://northwind-games.example/star-harbour",
    "website": "https://northwind-games.example",
    "buy_url": "https://northwind-games.example/star-harbour/buy",
    "languages": ["en", "de"],
    "color": "#1f7a80",
    "v": "4f1b2c3d5e6a",
    "license": "proprietary",
    "reason": "It loses saved games.",
    "email": "player@example.com",
    "login_hint": "player@example.com",
    "password": "a long sentence of your own",
    "filename": "star-harbour-1.4.0.zip",
    "alt": "The harbour at dawn",
    "size": 1048576,
    "width": 1280,
    "height": 720,
    "sha256": DIGEST,
    "manifest_sha256": DIGEST,
    "keyid": DIGEST,
    "code": "7K3M9-QX2WD-F4TBN-8HZRC",
    "codes": ["7K3M9-QX2WD-F4TBN-8HZRC"],
    "products": ["star-harbour"],
    "count": 1,
    "limit": 20,
    "cursor": CURSOR,
    "next_cursor": None,
    "type": "artifact.verify",
    "payload": {"artifact_id": ID},
    "scope": "read:library",
    "scopes": ["read:library"],
    "role": "publisher",
    "access_token": JWT,
    "token_type": "Bearer",
    "expires_in": 86400,
    "grant_type": "client_credentials",
    "client_id": "demo-publisher",
    "client_secret": "a-secret",
    "redirect_uri": "https://app.example/callback",
    "redirect_uris": ["https://app.example/callback"],
    "response_type": "code",
    "state": "af0ifjsldkj",
    "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    "code_challenge_method": "S256",
    "resource": ROOT,
    "assertion": JWT,
    "identity_assertion": JWT,
    "claim_token": CLAIM_TOKEN,
    "claim_attempt_token": "cat_Wm4k9pT2vX6sQ8yN",
    "csrf": "Zr3x8vK1mQ5tYw7N",
    "shown": "b2pTq7Lx0VnK4sRd",
    "token": "Wm4k9pT2vX6sQ8yNZr3x8vK1mQ5tYw7N",
    "signature": "c2lnbmF0dXJlb2Z0aGlzYWRkcmVzcw",
    "expires": 1772366400,
    "return_to": "/",
    "progress": 1,
    "sort": "title",
    "access": "free",
    "format": "json",
    "tier": "agent",
    "detail": "no product has this id or slug",
    "url": BASE + "/products/star-harbour",
    "uri": "https://store.example/api/v1/products",
    "service": "Countersign",
    "Idempotency-Key": "5f0c1b52-3c8e-4c4a-9f1e-2d9a3c1b7e60",
    "If-None-Match": '"9f86d081884c7d659a2feaa0"',
    "If-Match": '"9f86d081884c7d659a2feaa0"',
    "If-Range": '"9f86d081884c7d659a2feaa0"',
    "Last-Event-ID": "7",
    "browser": "Firefox",
    "system": "Linux",
    "Range": "bytes=0-1023",
    "Content-Range": "bytes 0-1023/4096",
    "Prefer": "wait=5",
}
"""Maps the name of a member or parameter to its example. The example is used only if the schema allows the value."""

_CEREMONY = {"user_code": "WDJB-MJHT", "verification_uri": ATTEMPT_PAGE, "expires_in": 600, "interval": 5}
_SIGNED = {
    "payloadType": "application/vnd.countersign.manifest+json",
    "payload": "eyJ2ZXJzaW9uIjoiMS40LjAifQ==",
    "signatures": [{"keyid": DIGEST, "sig": SIGNATURE}],
}

SHAPES: Mapping[str, Mapping[str, object]] = {
    "Index": {
        "service": "Countersign",
        "version": "1.0.0",
        "links": {"openapi": f"{ROOT}/openapi.json", "products": f"{BASE}/products", "keys": f"{ROOT}/api/keys"},
    },
    "Health": {"status": "ok", "version": "1.0.0"},
    "Info": {"service": "countersign distribution 1.1.0", "version": "1.0.0", "storage": "sqlite, local"},
    "Product": {"status": OMITTED},
    "Catalog": {"service": "Countersign", "version": "1.0.0"},
    "Release": {"status": OMITTED, "yank_reason": OMITTED},
    "Artifact": {"status": "ready"},
    "ExportedLibraryItem": {
        "product": "star-harbour",
        "source": f"batch:{ID}",
        "revoked_at": None,
        "hidden": False,
        "note": "Save games are in the cloud.",
        "downloaded_version": "1.4.0",
        "downloaded_platform": "linux",
    },
    "ExportedCollectionItem": {"product": "star-harbour"},
    "ExportedCollection": {"name": "Favourites"},
    "ExportedAgent": {
        "id": REGISTRATION,
        "kind": "service_auth",
        "status": "claimed",
        "name": "Shopping helper",
        "issuer": None,
        "address": "203.0.113.7",
    },
    "ExportedConsent": {"name": "Shopping helper", "sites": ["https://app.example"]},
    "ExportedIdentity": {"issuer": "https://id.example", "subject": "248289761001"},
    "Cover": {
        "url": "/api/v1/products/star-harbour/cover.svg?v=4f1b2c3d5e6a",
        "srcset": [],
        "placeholder": True,
        "alt": "The harbour at dawn",
    },
    "CoverImage": {"url": f"/api/v1/media/{DIGEST}", "type": "image/webp"},
    "ProductPublisher": {"slug": "northwind-games", "verified": False},
    "LatestRelease": {"size_by_platform": {"windows": 52428800, "linux": 48234496}},
    "Media": {"url": f"/api/v1/media/{DIGEST}", "duration": None},
    "NewMedia": {"filename": "cover.png"},
    "AnnouncedMedia": {
        "media_id": ID,
        "upload_url": f"{BASE}/media/uploads/Wm4k9pT2vX6sQ8yN",
        "expires_at": "2026-03-02T12:00:00Z",
    },
    "Announced": {"upload_url": f"{BASE}/artifacts/uploads/Wm4k9pT2vX6sQ8yN", "expires_at": "2026-03-02T12:00:00Z"},
    "Progress": {"received": [[0, 524287]]},
    "Envelope": _SIGNED,
    "ChannelState": {
        "statement": {**_SIGNED, "payloadType": "application/vnd.countersign.channel+json"},
        "root": {"keyid": DIGEST, "public": PUBLIC_KEY},
        "rotations": [],
    },
    "PublicKey": {"public": PUBLIC_KEY},
    "SigningKey": {"public": PUBLIC_KEY},
    "Pack": {
        "url": f"{BASE}/blobs/{DIGEST}?expires=1772366400&filename=pack&signature=c2ln",
        "chunks": [[0, 65536, 1]],
    },
    "ChunkPlaces": {
        "artifact_url": f"{BASE}/artifacts/{ID}",
        "artifact_size": 1048576,
        "artifact_sha256": DIGEST,
    },
    "Delta": {
        "url": f"{BASE}/blobs/{DIGEST}?expires=1772366400&filename=delta&signature=c2ln",
        "size": 337,
        "old": [[0, 1]],
        "files": [[0, 1]],
        "memory": 1048576,
    },
    "DeltaOffer": {"status": "ready", "from_manifest": DIGEST, "to_manifest": DIGEST},
    "Bill": {"bomFormat": "CycloneDX", "specVersion": "1.6"},
    "Metadata": {
        "component": {
            "name": "Star Harbour",
            "version": "1.4.0",
            "type": "application",
            "purl": "pkg:generic/star-harbour@1.4.0",
        }
    },
    "Component": {"name": "zlib", "version": "1.3.1", "type": "library", "purl": "pkg:generic/zlib@1.3.1"},
    "RedeemResult": {"already_owned": False},
    "NewBatch": {"count": 10},
    "Batch": {
        "kind": "license",
        "count": 10,
        "valid_from": None,
        "expires_at": "2026-12-31T23:59:59Z",
        "status": "active",
        "uses": 3,
        "created_at": "2026-03-01T12:00:00Z",
    },
    "RevokedBatch": {"status": "revoked", "revoked_entitlements": 0},
    "Operation": {"body": OMITTED, "headers": OMITTED},
    "BatchRequest": {"mode": "parallel"},
    "BatchResult": {"body": {"items": [], "next_cursor": None}, "headers": OMITTED},
    "JobStatus": {
        "status": "completed",
        "finished_at": "2026-03-01T12:00:01Z",
        "result": {"artifact_id": ID, "ok": True, "checked": ["artifact"], "findings": [], "wounds": 0},
        "error": None,
    },
    "Nested": {"text": "Which games run on Linux?"},
    "Preferred": {"mode": "list"},
    "AskAnswer": {
        "query": {"where": {"kind": {"any": ["game"]}, "platform": {"any": ["linux"]}}},
        "confidence": 1.0,
        "suggestions": [],
        "unused": [],
    },
    "Source": {"product": "star-harbour", "release": "1.4.0", "url": f"{BASE}/products/star-harbour"},
    "Result": {
        "url": f"{BASE}/products/star-harbour",
        "name": "Star Harbour",
        "site": "store.example",
        "score": 100,
        "schema_object": {"@type": "VideoGame", "name": "Star Harbour"},
    },
    "NlwebAnswer": {"elicitation": OMITTED, "error": OMITTED},
    "AnswerMeta": {"version": "0.54"},
    "AuthorizeForm": {"decision": "allow"},
    "ClaimForm": {"confirm": "yes", "decline": OMITTED, "user_code": "WDJB-MJHT"},
    "RegisterRequest": {
        "type": "service_auth",
        "grant_type": OMITTED,
        "assertion": OMITTED,
        "email": OMITTED,
    },
    "ClaimRequest": {"type": OMITTED, "email": OMITTED, "login_hint": OMITTED, "assertion": OMITTED},
    "CompleteRequest": {"user_code": "284913"},
    "Registered": {
        "registration_id": REGISTRATION,
        "id": REGISTRATION,
        "registration_type": "service_auth",
        "type": "service_auth",
        "scopes": {"post_claim": ["read:library"]},
        "identity_assertion": OMITTED,
        "assertion_expires": OMITTED,
        "identity": OMITTED,
        "pre_claim_scopes": OMITTED,
        "post_claim_scopes": ["read:library"],
        "claim_url": f"{BASE}/auth/me",
    },
    "Ceremony": {**_CEREMONY, "token": CLAIM_TOKEN, "url": f"{BASE}/auth/me"},
    "TypedCode": _CEREMONY,
    "AttemptLink": {"verification_uri": ATTEMPT_PAGE},
    "Me": {
        "sub": ID,
        "client_id": REGISTRATION,
        "roles": {"northwind-games": "publisher"},
        "registration_id": REGISTRATION,
        "registration_type": "service_auth",
    },
    "Claimed": {"status": "claimed", "registration_id": REGISTRATION, "id": REGISTRATION},
    "Pending": {
        "status": "pending",
        "registration_id": REGISTRATION,
        "interval": 5,
        "expires_in": 412,
        "error": "authorization_pending",
    },
    "Initiated": {
        "registration_id": REGISTRATION,
        "id": REGISTRATION,
        "type": "service_auth",
        "claim_attempt_id": "cat_Wm4k9pT2vX6sQ8yN",
        "status": "initiated",
    },
    "ClientRegistered": {
        "client_id_issued_at": 1772366400,
        "client_secret_expires_at": 0,
        "client_name": "Example",
        "redirect_uris": ["http://127.0.0.1:3030/callback"],
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "client_secret_basic",
    },
    "Shelf": {"id": "games", "title_key": "home.games", "query": "kind=game&sort=-downloads_7d"},
    "FacetCount": {"value": "linux", "count": 7},
    "Organisation": {"slug": "northwind-games", "text": "We make small games."},
    "OrganisationUpdate": {"text": "We make small games."},
    "Owned": {"note": "For the train", "installed_version": "1.3.0"},
    "Update": {"delta_size": 65536},
    "LibraryUpdate": {"note": "For the train"},
    "LibraryItem": {"note": "For the train"},
    "Target": {"type": "product", "name": "Star Harbour"},
    "CollectionWrite": {"name": "For the train"},
    "Collection": {"name": "For the train", "count": 7},
    "Seen": {"until": "2026-03-01T12:00:00Z"},
    "Stats": {"metric": "downloads", "step": "day", "total": 420},
    "StatsGroup": {"key": "linux", "label": "linux", "total": 280},
    "Point": {"at": "2026-03-01", "value": 42},
    "Previous": {"total": 390},
    "Marker": {"product": "star-harbour"},
    "Publisher": {"text": "We make small games.", "product_count": 7, "release_count": 31},
    "SuggestedPublisher": {"product_count": 7},
    "Usage": {"codes": 10, "stored_bytes": 1048576, "downloads": 42},
    "Downloaded": {"product": "star-harbour", "downloads": 42},
    "NewClient": {"name": "Build server", "implicit": False},
    "Client": {"name": "Build server", "implicit": False},
    "NewWebhook": {"url": "https://hooks.example/countersign", "types": ["release.published", "job.ended"]},
    "Webhook": {
        "url": "https://hooks.example/countersign",
        "types": ["release.published", "job.ended"],
        "failures": 0,
        "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
    },
    "Delivery": {
        "type": "release.published",
        "subject": f"products/{ID}/releases/1.4.0",
        "state": "delivered",
        "due_at": None,
        "answer": 204,
        "fault": None,
    },
    "WebhookEvent": {
        "specversion": "1.0",
        "source": BASE,
        "type": "release.published",
        "subject": f"products/{ID}/releases/1.4.0",
    },
    "Replayed": {"next_since": None},
    "EventError": {"err": "invalid_issuer", "description": "the issuer is not trusted here"},
    "ProvisionedKey": {"status": "provisioned", "api_key": KEY},
    "SandboxMetadata": {"status": "ok", "environment": "sandbox"},
    "SandboxHealth": {"status": "ok", "environment": "sandbox"},
    "SandboxTelemetry": {"status": "ok", "active_agents": 3},
    "RpcAnswer": {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "isError": False}, "error": OMITTED},
    "RpcError": {"code": -32602, "message": "Unknown tool: fly", "data": OMITTED},
    "ProblemType": {
        "code": "resource_not_found",
        "title": "Not found",
        "status": 404,
        "meaning": "Nothing has this name, or the caller may not see it.",
        "resolution": "Look at the list of products.",
    },
    "Wiki": {"title": "Countersign distribution", "version": "1.0.0", "base_url": BASE},
    "Section": {"id": "catalog", "text": "Products and releases.", "endpoints": ["GET /api/v1/products"]},
    "Page": {
        "endpoint": "GET /api/v1/products",
        "operation_id": "get_products",
        "section": "catalog",
        "text": "List products.",
        "needs": "nothing",
        "parameters": {"limit": "query"},
        "answers": {"200": "application/json"},
        "errors": ["invalid_cursor"],
        "addition": False,
    },
    "Sample": {
        "request": "GET /api/v1/products?limit=20",
        "body": OMITTED,
        "status": 200,
        "answer": {"items": [], "next_cursor": None},
    },
}
"""Maps the name of an object's schema to examples of its members. These replace the examples in `NAMED` that would be
wrong for the object."""

EVENT_EXAMPLES: Mapping[str, Mapping[str, object]] = {
    "ask": {"event": "delta", "data": '{"text":"Star Harbour runs on Linux."}'},
    "jobs": {"event": "status", "data": f'{{"job_id":"{ID}","status":"running","progress":0.5}}'},
    "tools": {"event": "message", "data": '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'},
}
"""Maps the feature that sends a stream of events to an example of an event."""

EXAMPLE_BY_PATH: Mapping[str, Mapping[str, object]] = {
    "/openapi.json": {"openapi": "3.1.0", "info": {"title": "Countersign distribution", "version": "1.0.0"}},
    "/openapi/": {"openapi": "3.1.0", "info": {"title": "Countersign distribution", "version": "1.0.0"}},
    "/.well-known/api-catalog": {
        "linkset": [{"anchor": BASE, "service-desc": [{"href": f"{ROOT}/openapi.json", "type": "application/json"}]}]
    },
    "/.well-known/jwks.json": {"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": DIGEST}]},
    "/.well-known/oauth-authorization-server": {"issuer": ROOT, "token_endpoint": f"{BASE}/auth/login"},
    "/.well-known/oauth-protected-resource": {"resource": ROOT, "authorization_servers": [ROOT]},
    "/auth/revoke": {},
}
"""Maps a path whose response is an object without defined members to an example of the response. The example also
applies to paths that begin with this path."""


_FORMATS: Mapping[str, str] = {
    "uuid": ID,
    "uri": "https://store.example/api/v1/products",
    "uri-reference": "/api/v1/products",
    "date-time": "2026-03-01T12:00:00Z",
    "date": "2026-03-01",
}
_FORM_OF: Mapping[str, re.Pattern[str]] = {
    "uuid": re.compile(r"[0-9a-f]{8}-"),
    "uri": re.compile(r"https?://"),
    "uri-reference": re.compile(r"https?://|/"),
    "date-time": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T"),
    "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
}
_KINDS: Mapping[type, str] = {str: "string", list: "array", int: "integer", dict: "object", type(None): "null"}
_MAX_DEPTH = 12


class Examples:
    """Makes examples of schemas. The schemas may refer to `components`."""

    def __init__(self, components: Mapping[str, Document]) -> None:
        self._components = components

    def example_of(self, schema: Document, name: str = "", depth: int = 0) -> Any:
        """Return a value that the schema allows, and that is typical of a member or parameter called `name`. `allOf`,
        `not` and conditions are ignored because the documents do not use them."""
        if "$ref" in schema:
            component = str(schema["$ref"]).rpartition("/")[2]
            referenced_schema = self._components[component]
            if referenced_schema.get("type") == "object":
                return self._object(referenced_schema, depth + 1, SHAPES.get(component, {}))
            return self.example_of(referenced_schema, name, depth + 1)
        candidates = _candidates(schema, name)
        if candidates:
            return candidates[0]
        if "anyOf" in schema:
            alternatives = cast("list[Document]", schema["anyOf"])
            return self.example_of(
                next(
                    (alternative for alternative in alternatives if alternative.get("type") != "null"), alternatives[0]
                ),
                name,
                depth + 1,
            )
        return self._example_of_type(schema, name, depth)

    def _example_of_type(self, schema: Document, name: str, depth: int) -> Any:
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, depth, {})
        if kind == "array":
            return self._array(schema, name, depth)
        if kind == "string":
            return _text(schema)
        if name == "status" and kind == "integer":
            return 200
        if kind in ("integer", "number"):
            return schema.get("minimum", min(1, schema.get("maximum", 1)))
        return kind == "boolean"

    def _object(self, schema: Document, depth: int, known_members: Mapping[str, object]) -> Document:
        """Return an object with the known members and the members that the schema describes. An optional member whose
        default is null is omitted if it has no example."""
        members: Mapping[str, Document] = schema.get("properties", {})
        required_names = schema.get("required", ())
        result: Document = {}
        for member_name, member in members.items():
            # A schema may refer to itself: omit optional members at the maximum depth, so that the recursion ends.
            if member_name in known_members:
                result[member_name] = known_members[member_name]
            elif member_name in required_names or (depth < _MAX_DEPTH and not _is_null_default(member_name, member)):
                result[member_name] = self.example_of(member, member_name, depth + 1)
        return {member_name: value for member_name, value in result.items() if value is not OMITTED}

    def _array(self, schema: Document, name: str, depth: int) -> list[Any]:
        items = schema.get("items")
        if not isinstance(items, dict) or depth >= _MAX_DEPTH:
            return []
        item = cast("Document", items)
        return [
            self.example_of(item, name.removesuffix("s"), depth + 1) for _ in range(max(1, schema.get("minItems", 1)))
        ]


def _candidates(schema: Document, name: str) -> Sequence[Any]:
    """Return possible examples; the caller uses the first. They are the examples of the schema, the example in `NAMED`,
    the values of an enumeration, or the default, whichever exists first."""
    if examples_given := schema.get("examples"):
        return cast("list[Any]", examples_given)
    if name in NAMED and _fits(NAMED[name], schema):
        return [NAMED[name]]
    if "enum" in schema:
        return cast("list[Any]", schema["enum"])
    return [schema["default"]] if "default" in schema else []


def _is_null_default(name: str, schema: Document) -> bool:
    """Whether the default of a member is null, and `NAMED` has no example for the member."""
    return "default" in schema and schema["default"] is None and not (name in NAMED and _fits(NAMED[name], schema))


def _fits(value: object, schema: Document) -> bool:
    """Whether the schema allows the value. Only the keywords that distinguish the names in use are checked."""
    if "anyOf" in schema:
        return any(_fits(value, alternative) for alternative in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    kind = _KINDS[type(value)]
    if schema.get("type") not in (kind, "number" if kind == "integer" else kind):
        return False
    if isinstance(value, str):
        return _is_text_for(value, schema)
    if isinstance(value, list):
        return all(_fits(member, schema.get("items", {})) for member in cast("list[object]", value))
    if isinstance(value, int):
        return schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return True


def _is_text_for(value: str, schema: Document) -> bool:
    if schema.get("format") in _FORMATS and _FORM_OF[schema["format"]].match(value) is None:
        return False
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return False
    return re.search(schema.get("pattern", ""), value) is not None


def _text(schema: Document) -> str:
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    for candidate in ("text", "a", DIGEST, "a@example.com", "https://store.example/", "1.0.0"):
        if _is_text_for(candidate, schema):
            return candidate
    return "x" * schema.get("minLength", 1)
