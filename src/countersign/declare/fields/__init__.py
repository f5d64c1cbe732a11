"""The kinds of field, one file each: how a value is read, stored, shown, compared, ordered and described."""
