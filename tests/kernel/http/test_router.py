"""Finds the route and its parameters for a method and a path."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.errors import NotFound
from countersign.kernel.http.problems import MethodNotAllowed, RouteNotFound
from countersign.kernel.http.request import Request, RequestCaller
from countersign.kernel.http.response import Response, no_content
from countersign.kernel.http.routing import (
    FORM_BYTES,
    MAX_KNOWN_LENGTH,
    MAX_KNOWN_PATHS,
    MEBIBYTE,
    Nothing,
    Route,
    Router,
    route,
)


async def handle(call: Request[None, RequestCaller, Nothing, Nothing]) -> Response:
    """Do nothing."""
    return no_content()


def new_route(method: str, path: str, *, at_root: bool = False) -> Route[None]:
    return route(method, path, handle, answers={204: None}, at_root=at_root)


ROUTES = (
    new_route("GET", "/things"),
    new_route("POST", "/things"),
    new_route("GET", "/things/{id}"),
    new_route("PUT", "/things/{id}/parts/{part}"),
    new_route("GET", "/health", at_root=True),
)
ROUTER = Router(ROUTES, "/api")


def test_a_path_leads_to_its_route_with_decoded_parameters() -> None:
    matched_route, values = ROUTER.match("PUT", "/api/things/a%20b/parts/1.0+x%2Fy")

    assert matched_route is ROUTES[3]
    assert values == {"id": "a b", "part": "1.0+x/y"}


def test_head_is_answered_by_the_route_of_get() -> None:
    assert ROUTER.match("HEAD", "/api/things")[0] is ROUTES[0]


async def handle_raw(call: Request[None, RequestCaller, Nothing, bytes]) -> Response:
    """Do nothing."""
    return no_content()


def raw(method: str, path: str) -> Route[None]:
    return route(method, path, handle_raw, body=bytes, answers={204: None})


def test_raw_parameters_are_passed_as_sent_and_are_tried_behind_a_literal() -> None:
    routes = (raw("POST", "/auth/login"), raw("GET", "/meta"), raw("POST", "/{model}/{command}"))
    router = Router(routes, "")

    for _ in range(2):
        assert router.match("POST", "/a%20b/") == (routes[2], {"model": "a%20b", "command": ""})
        assert router.match("POST", "/auth/other") == (routes[2], {"model": "auth", "command": "other"})
        with pytest.raises(MethodNotAllowed):
            router.match("GET", "/meta/x")
    with pytest.raises(RouteNotFound):
        router.match("POST", "/auth")


def test_the_paths_that_a_router_remembers_are_bounded() -> None:
    router = Router((raw("POST", "/{model}/{command}"),), "")

    for number in range(MAX_KNOWN_PATHS + 1):
        assert router.match("POST", f"/a/{number}")[1] == {"model": "a", "command": str(number)}
    assert router.match("POST", f"/a/{'b' * MAX_KNOWN_LENGTH}")[1]["command"] == "b" * MAX_KNOWN_LENGTH


def test_a_route_at_the_root_has_no_prefix() -> None:
    assert ROUTER.match("GET", "/health")[0] is ROUTES[4]
    with pytest.raises(RouteNotFound):
        ROUTER.match("GET", "/api/health")


def test_a_wrong_method_is_answered_with_the_allowed_methods() -> None:
    with pytest.raises(MethodNotAllowed) as refusal:
        ROUTER.match("DELETE", "/api/things")

    assert refusal.value.headers["Allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("path", ["/", "", "/api", "/api/things/", "/api/things//parts/x", "/api/other", "/things"])
def test_other_paths_match_no_route(path: str) -> None:
    with pytest.raises(RouteNotFound):
        ROUTER.match("GET", path)


@pytest.mark.parametrize("segment", ["%ff", "%00", "a%00b"])
def test_a_path_parameter_that_is_not_text_matches_no_route(segment: str) -> None:
    with pytest.raises(NotFound):
        ROUTER.match("GET", f"/api/things/{segment}")


@given(st.text(max_size=80))
def test_no_path_breaks_the_router(path: str) -> None:
    with contextlib.suppress(NotFound, MethodNotAllowed, RouteNotFound):
        ROUTER.match("GET", path)


def test_a_duplicate_endpoint_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        Router((new_route("GET", "/a"), new_route("GET", "/a")), "")
    with pytest.raises(ValueError, match="called id"):
        Router((new_route("GET", "/a/{id}"), new_route("GET", "/a/{name}/b")), "")


def test_a_route_needs_a_summary_for_people() -> None:
    async def silent(call: Request[None, RequestCaller, Nothing, Nothing]) -> Response:
        return no_content()

    with pytest.raises(TypeError, match="docstring"):
        route("GET", "/a", silent, answers={204: None})


def test_a_form_has_a_lower_limit_than_other_bodies_unless_the_route_sets_a_limit() -> None:
    form = route("POST", "/a", handle, answers={204: None}, form=True)
    other_route = route("POST", "/a", handle, answers={204: None}, form=True, body_limit=MEBIBYTE)

    assert (form.body_limit, other_route.body_limit, new_route("POST", "/a").body_limit) == (
        FORM_BYTES,
        MEBIBYTE,
        MEBIBYTE,
    )
