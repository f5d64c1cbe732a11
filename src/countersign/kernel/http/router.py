"""From a path to its route: a tree of segments, walked once."""

from collections.abc import Iterable
from typing import Generic
from urllib.parse import unquote

from countersign.kernel.errors import NotFound
from countersign.kernel.http.problems import MethodNotAllowed, RouteNotFound
from countersign.kernel.http.request import ContextT
from countersign.kernel.http.routing import Route

_NO_PARAMETERS: dict[str, str] = {}


class _Node(Generic[ContextT]):
    __slots__ = ("literals", "parameter", "parameter_name", "routes")

    def __init__(self) -> None:
        self.literals: dict[str, _Node[ContextT]] = {}
        self.parameter: _Node[ContextT] | None = None
        self.parameter_name = ""
        self.routes: dict[str, Route[ContextT]] = {}


class Router(Generic[ContextT]):
    """All routes of a service by path and method. HEAD is answered by the route of GET."""

    def __init__(self, routes: Iterable[Route[ContextT]], prefix: str) -> None:
        """`prefix` (such as /api/v1) goes before every route that is not declared at the root.

        Raises:
            ValueError: two routes have the same method and address.
        """
        self._root: _Node[ContextT] = _Node()
        self._static: dict[str, _Node[ContextT]] = {}
        for route in routes:
            self._add(route, route.path if route.at_root else prefix + route.path)

    def _add(self, route: Route[ContextT], path: str) -> None:
        node = self._root
        for segment in path.split("/")[1:]:
            if segment.startswith("{"):
                if node.parameter is None:
                    node.parameter, node.parameter_name = _Node(), segment[1:-1]
                if node.parameter_name != segment[1:-1]:
                    raise ValueError(f"{path}: the parameter is called {node.parameter_name} elsewhere")
                node = node.parameter
            else:
                node = node.literals.setdefault(segment, _Node())
        if route.method in node.routes:
            raise ValueError(f"{route.method} {path} is declared twice")
        node.routes[route.method] = route
        if "{" not in path:
            self._static[path] = node

    def match(self, method: str, raw_path: str) -> tuple[Route[ContextT], dict[str, str]]:
        """The route of a method and an undecoded path, with the decoded values of its parameters.

        Raises:
            RouteNotFound: nothing has this address.
            MethodNotAllowed: something has, for other methods; Allow names them.
            NotFound: a parameter is no text that anything could be named by.
        """
        node = self._static.get(raw_path)
        values = _NO_PARAMETERS
        if node is None:
            node, values = self._walk(raw_path)
        route = node.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            allowed = sorted(node.routes) + (["HEAD"] if "GET" in node.routes else [])
            raise MethodNotAllowed(f"{method} is not offered here", headers={"Allow": ", ".join(sorted(allowed))})
        return route, values

    def _walk(self, raw_path: str) -> tuple[_Node[ContextT], dict[str, str]]:
        node = self._root
        values: dict[str, str] = {}
        for segment in raw_path.split("/")[1:]:
            step = node.literals.get(segment)
            if step is None:
                step = node.parameter
                if step is None or not segment:
                    raise RouteNotFound("no endpoint has this address")
                values[node.parameter_name] = _decoded(segment)
            node = step
        if not node.routes:
            raise RouteNotFound("no endpoint has this address")
        return node, values


def _decoded(segment: str) -> str:
    if "%" not in segment:
        return segment
    try:
        text = unquote(segment, errors="strict")
    except UnicodeDecodeError as error:
        raise NotFound("nothing has this name") from error
    if "\0" in text:
        raise NotFound("nothing has this name")
    return text
