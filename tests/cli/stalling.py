"""The command line with one fault: whoever signs in to the records service makes its event loop stand still."""

from countersign.cli.main import main
from countersign.kernel.http.response import Response
from countersign.records.handlers import Handlers
from countersign.records.http import RecordsRequest


async def spin(_: Handlers, __: RecordsRequest) -> Response:
    """Use the processor and never give the loop a turn."""
    while True:
        pass


if __name__ == "__main__":
    Handlers.login = spin
    main()
