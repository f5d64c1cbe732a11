"""The command line with one fault: whoever signs in to the records service makes its event loop stand still."""

import time

from countersign.cli.main import main
from countersign.kernel.http.answer import Answer
from countersign.records import edge
from countersign.records.access.view import Caller
from countersign.records.handlers import Handlers


async def spin(_: Handlers, __: edge.Call[Caller]) -> Answer:
    """Never give the loop a turn; asleep most of the time, so that who looks on has the processor."""
    while True:
        time.sleep(0.01)


if __name__ == "__main__":
    Handlers.login = spin
    main()
