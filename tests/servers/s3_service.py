"""The S3 service by itself, on the loopback port that is given.

moto's own server looks at each request for which of its hundred services is meant, which takes a third of its time.
"""

import sys

from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple


class Silent(WSGIRequestHandler):
    """Answers without a line for each request."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), create_backend_app("s3"), threaded=True, request_handler=Silent)
