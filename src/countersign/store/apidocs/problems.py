"""ROOT/problems/{type}: a page for every problem type the service answers with."""

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape

import msgspec

from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from countersign.kernel.errors import InvalidRequest, NotFound, Refused, StorageFull, Unavailable
from countersign.kernel.http import html
from countersign.kernel.http.decode import UnsupportedMediaType
from countersign.kernel.http.deprecation import EndpointGone, MemberGone
from countersign.kernel.http.idempotency import InProgress, KeyReused
from countersign.kernel.http.problems import InternalError, MethodNotAllowed, NotAcceptable, RouteNotFound
from countersign.kernel.http.rate_limit import RateLimited
from countersign.kernel.http.request import BodyTooLarge
from countersign.kernel.http.response import JSON, Response, encode
from countersign.kernel.http.routing import Nothing, Route, route
from countersign.store.apidocs import documents
from countersign.store.auth.authentication import InsufficientScope, SandboxOnly, Unauthenticated
from countersign.store.auth.callers import StoreRequest
from countersign.store.context import Store
from countersign.store.jobs.job_types import JobCancelled, JobFailed
from countersign.store.releases.processing.build_job import ArtifactDamaged

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
    EndpointGone,
    MemberGone,
    InternalError,
    Unavailable,
    StorageFull,
)
IN_JOBS: tuple[type[Refused], ...] = (JobCancelled, JobFailed, ArchiveRefused, ArchiveUnknown, ArtifactDamaged)
"""Problems that occur only as the `error` of a failed job."""


class ProblemTypeNotFound(NotFound):
    """No problem of the service has this type."""

    resolution = "Use the address in the `type` member of a problem."


def problem_types(routes: Iterable[Route[Store]]) -> dict[str, type[Refused]]:
    """Map the name of each problem type in addresses (its code with dashes) to the refusal that explains the type.

    If several refusals share a code, a general refusal, which any route can answer with, takes precedence.
    """
    declared_refusals = (refusal for route in routes for refusal in route.refusals)
    return {refusal.code.replace("_", "-"): refusal for refusal in (*declared_refusals, *IN_JOBS, *EVERYWHERE)}


class ProblemType(msgspec.Struct):
    """A problem type: its meaning and its resolution."""

    code: str
    title: str
    status: int
    meaning: str
    resolution: str


def routes(described_routes: Sequence[Route[Store]]) -> tuple[Route[Store], ...]:
    """Return the route of the problem pages of these routes. Routes may be added to the sequence after this call."""

    @cache
    def types_by_name() -> dict[str, type[Refused]]:
        return problem_types(described_routes)

    async def show_problem_type(call: StoreRequest[Nothing, Nothing]) -> Response:
        """Explain a problem type."""
        problem_type = types_by_name().get(call.path["type"])
        if problem_type is None:
            raise ProblemTypeNotFound("no problem has this type")
        explanation = problem_page(problem_type)
        vary = (("Vary", "Accept"),)
        if "text/html" not in (call.headers.get("accept") or ""):
            return documents.document_response(encode(explanation), headers=vary)
        body = (
            f"<p><code>{escape(explanation.code)}</code>, status "
            f"{explanation.status}</p><p>{escape(explanation.meaning)}</p>"
        )
        page = html.render_page(explanation.title, f"{body}<p>{escape(explanation.resolution)}</p>")
        return documents.document_response(page, html.HTML, (*vary, html.POLICY))

    return (
        route(
            "GET",
            "/problems/{type}",
            show_problem_type,
            answers={200: ProblemType},
            refusals=(ProblemTypeNotFound,),
            produces=(JSON, "text/html; charset=utf-8", "text/html"),
            **documents.OPTIONS,
        ),
    )


def problem_page(refusal: type[Refused]) -> ProblemType:
    """Return the content of a problem type's page."""
    meaning = " ".join((refusal.__doc__ or "").split())
    return ProblemType(refusal.code, refusal.title, refusal.status, meaning, refusal.resolution)
