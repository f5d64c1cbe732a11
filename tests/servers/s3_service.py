"""A program that runs moto's S3 service on the loopback port in its argument.

moto's own server finds out for each request which of its hundred services it is for, and uses a connection and a thread
for each request. Together, this takes more than twice the time of the response itself.
"""

import io
import sys
from functools import cache
from typing import Any

import uvicorn
from moto.core.errors import ErrorLookupFactory
from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.wrappers import Response


class S3Application:
    """moto's S3 service as an ASGI application. It reads the whole body of a request before it handles the request."""

    def __init__(self) -> None:
        # By default, moto creates its table of errors again for each response.
        name = "_create_error_lut"
        setattr(ErrorLookupFactory, name, staticmethod(cache(getattr(ErrorLookupFactory, name))))
        self._app = create_backend_app("s3")
        # Remove the CORS headers, because no browser calls the service from another origin.
        self._app.after_request_funcs.clear()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request."""
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
    """Return the WSGI environment of the request."""
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
    uvicorn.run(S3Application(), port=port, log_level="error", lifespan="off", server_header=False)
