"""The command line with one fault: a sign-in to the records service blocks its event loop."""

from countersign.cli.main import main
from countersign.kernel.http.response import Response
from countersign.records.http import RecordsRequest
from countersign.records.rest_handlers import Handlers


async def spin(_: Handlers, __: RecordsRequest) -> Response:
    """Use the processor without returning to the event loop."""
    while True:
        pass


if __name__ == "__main__":
    Handlers.login = spin
    main()
