"""The kinds of fields. A kind defines how a value is read, stored, shown, compared, ordered and described."""
