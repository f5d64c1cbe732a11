"""The modules included in Countersign; each uses only the public declaration language, like a third-party module."""
