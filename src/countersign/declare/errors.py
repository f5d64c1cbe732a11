"""The errors of declarations and of values."""


class DeclarationError(Exception):
    """The declaration of a module is invalid. The text names the file, model, field and remedy. Raised at start-up."""


class BadValue(Exception):
    """A value is invalid for its field. The text states the requirement ("must be a real calendar date, YYYY-MM-DD").

    The text never contains the value: the caller may have sent a placeholder token and must not learn its value.
    """
