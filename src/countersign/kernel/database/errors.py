"""What a statement can do wrong that is no refusal: mistakes of the code that sent it."""


class ConstraintViolation(Exception):
    """A statement broke a UNIQUE, FOREIGN KEY, NOT NULL or CHECK rule; the statement did nothing.

    Expect it with ON CONFLICT in the statement instead of catching this: inside a PostgreSQL transaction a failed
    statement spoils the whole transaction, unless it stood in a `savepoint()`.
    """


class WrittenOutsideTransaction(Exception):
    """A statement that writes was given to a reader; open a `transaction()` for it."""
