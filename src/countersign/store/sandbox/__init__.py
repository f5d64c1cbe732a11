"""The sandbox: the whole API on throw-away data sets, one for each key or anonymous address."""
