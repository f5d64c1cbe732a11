"""ROOT/problems/{type}: a page for every problem type the service answers with."""

from collections.abc import Iterable
from html import escape

from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from countersign.distribution.context import Store
from countersign.distribution.identity.callers import Request
from countersign.distribution.identity.gate import InsufficientScope, SandboxOnly, Unauthenticated
from countersign.distribution.jobs.refusals import JobCancelled, JobFailed
from countersign.distribution.processing.ingest import ArtifactDamaged
from countersign.kernel.errors import InvalidRequest, NotFound, Refused, StorageFull, Unavailable
from countersign.kernel.http import answer
from countersign.kernel.http.answer import JSON, Answer
from countersign.kernel.http.call import BodyTooLarge
from countersign.kernel.http.decode import UnsupportedMediaType
from countersign.kernel.http.deprecation import Gone
from countersign.kernel.http.idempotency import InProgress, KeyReused
from countersign.kernel.http.problems import InternalError, MethodNotAllowed, NotAcceptable, RouteNotFound
from countersign.kernel.http.ratelimit import RateLimited
from countersign.kernel.http.route import Nothing, Route, route

EVERYWHERE: tuple[type[Refused], ...] = (
    InvalidRequest,
    Unauthenticated,
    InsufficientScope,
    SandboxOnly,
    NotFound,
    RouteNotFound,
    MethodNotAllowed,
    NotAcceptable,
    BodyTooLarge,
    UnsupportedMediaType,
    KeyReused,
    InProgress,
    RateLimited,
    Gone,
    InternalError,
    Unavailable,
    StorageFull,
)
IN_JOBS: tuple[type[Refused], ...] = (JobCancelled, JobFailed, ArchiveRefused, ArchiveUnknown, ArtifactDamaged)
"""What no answer is, but the `error` of a failed job."""


class ProblemTypeNotFound(NotFound):
    """No problem of the service has this type."""

    resolution = "Use the address in the `type` member of a problem."


def types(routes: Iterable[Route[Store]]) -> dict[str, type[Refused]]:
    """Every problem type by its name in addresses (code with dashes).

    A code that several refusals share is explained by the one that may come from everywhere, not by one feature's.
    """
    named = (refusal for each in routes for refusal in each.refusals)
    return {refusal.code.replace("_", "-"): refusal for refusal in (*named, *IN_JOBS, *EVERYWHERE)}


def routes(described: Iterable[Route[Store]]) -> tuple[Route[Store], ...]:
    """The route of the problem pages of these routes."""
    known = types(described)

    async def show_problem_type(call: Request[Nothing, Nothing]) -> Answer:
        """Explain a problem type."""
        found = known.get(call.path["type"])
        if found is None:
            raise ProblemTypeNotFound("no problem has this type")
        meaning = " ".join((found.__doc__ or "").split())
        headers = (("Cache-Control", "public, max-age=3600"), ("Vary", "Accept"))
        if "text/html" not in (call.headers.get("accept") or ""):
            document = {
                "code": found.code,
                "title": found.title,
                "status": found.status,
                "meaning": meaning,
                "resolution": found.resolution,
            }
            return answer.json(document, headers=headers)
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(found.title)}</title>'
            f"<h1>{escape(found.title)}</h1><p><code>{escape(found.code)}</code>, status {found.status}</p>"
            f"<p>{escape(meaning)}</p><p>{escape(found.resolution)}</p></html>"
        )
        return Answer(200, page.encode(), "text/html; charset=utf-8", headers)

    return (
        route(
            "GET",
            "/problems/{type}",
            show_problem_type,
            answers={200: dict},
            refusals=(ProblemTypeNotFound,),
            produces=(JSON, "text/html; charset=utf-8", "text/html"),
            at_root=True,
        ),
    )
