"""The pieces statements are put together from: names from declarations, values as parameters."""

from collections.abc import Callable

from countersign.kernel.database.port import Value


class Parameters:
    """The values of a statement under construction."""

    def __init__(self, *values: Value) -> None:
        self.values: list[Value] = list(values)

    def put(self, value: Value) -> str:
        """The placeholder that stands for the value."""
        self.values.append(value)
        return f"${len(self.values)}"


class Borrowed(Parameters):
    """Parameters of a statement that is being made elsewhere."""

    def __init__(self, put: Callable[[Value], str]) -> None:
        super().__init__()
        self._put = put

    def put(self, value: Value) -> str:
        """The placeholder for the value in that statement."""
        return self._put(value)


def column(table: str, name: str) -> str:
    """A column of a table's alias; the name comes from a declaration, which checks it."""
    return f'{table}."{name}"'


def all_of(conditions: list[str]) -> str:
    """The conditions joined by AND; true when there is none."""
    return " AND ".join(conditions) if conditions else "1 = 1"
