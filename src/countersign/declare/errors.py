"""The errors of declarations and of values."""


class DeclarationError(Exception):
    """A module is declared wrongly; the text names file, model, field and the remedy. Raised at start-up."""


class BadValue(Exception):
    """A value does not fit its field; the text says what must be ("must be a real calendar date, YYYY-MM-DD").

    It never repeats the value: the caller may have sent a placeholder whose meaning must not come back.
    """
