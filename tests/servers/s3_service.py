"""The S3 service by itself, on the loopback port that is given.

moto's own server looks at each request for which of its hundred services is meant, and takes a connection and a thread
for each: together more than twice what the answer takes.
"""

import io
import sys
from functools import cache
from typing import Any

import uvicorn
from moto.core.errors import ErrorLookupFactory
from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.wrappers import Response


class Service:
    """moto's S3 as an ASGI application; one request after the other, each with its whole body."""

    def __init__(self) -> None:
        # moto makes its table of errors again for each answer.
        made = "_create_error_lut"
        setattr(ErrorLookupFactory, made, staticmethod(cache(getattr(ErrorLookupFactory, made))))
        self._app = create_backend_app("s3")
        # Browsers of other origins are none of its callers.
        self._app.after_request_funcs.clear()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        body = bytearray()
        while (message := await receive()).get("more_body"):
            body += message["body"]
        body += message.get("body", b"")
        if message["type"] == "http.disconnect":
            return
        answer = Response.from_app(self._app, _environ(scope, bytes(body)), buffered=True)
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": answer.get_data()})


def _environ(scope: Any, body: bytes) -> dict[str, Any]:
    """The request as WSGI has it."""
    environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "RAW_URI": scope["raw_path"].decode("latin-1"),
        "SERVER_NAME": scope["server"][0],
        "SERVER_PORT": str(scope["server"][1]),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": scope["client"][0],
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in scope["headers"]:
        key = name.decode("latin-1").upper().replace("-", "_")
        if key not in ("CONTENT_LENGTH", "TRANSFER_ENCODING"):
            environ[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value.decode("latin-1")
    return environ


if __name__ == "__main__":
    port = int(sys.argv[1])
    uvicorn.run(Service(), port=port, log_level="error", lifespan="off", server_header=False)
