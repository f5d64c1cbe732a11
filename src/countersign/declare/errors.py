"""The errors of declarations and of values."""


class DeclarationError(Exception):
    """The declaration of a module is invalid. The error is raised at start-up and names the file, the model, the field
    and the remedy."""


class BadValue(Exception):
    """A value is invalid for its field. The text states the requirement ("must be a real calendar date, YYYY-MM-DD").

    The text never contains the value, because a caller that sent a placeholder token must not learn the value of the
    token.
    """
