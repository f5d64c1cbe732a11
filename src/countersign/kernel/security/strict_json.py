"""JSON objects inside tokens and events of others: read as bodies are, less deep, and never quoted in a refusal."""

from typing import TypeAlias, cast

from countersign.kernel import json_reader
from countersign.kernel.json_reader import DuplicateKey, InvalidJson, NotJson

MAX_DEPTH = 16

Members: TypeAlias = dict[str, object]
"""The members of a JSON object; values are JSON values of any kind."""


def members(data: bytes) -> Members:
    """The members of the JSON object that the bytes are.

    Raises:
        ValueError: as `json_reader.read`, or no object; more than 16 levels are too deep. The text quotes nothing of
            the bytes.
    """
    try:
        value = json_reader.read(data, max_depth=MAX_DEPTH)
    except (NotJson, DuplicateKey):
        # The cause would quote what was sent.
        raise ValueError("not a JSON object in UTF-8 with unique keys") from None
    except InvalidJson as error:
        raise ValueError(str(error)) from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return cast("Members", value)
