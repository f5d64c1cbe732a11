"""The private data of a person or an organisation: follows, collections, notes on the library, notifications."""
