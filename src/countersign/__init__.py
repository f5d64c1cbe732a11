"""Countersign: agents act, people countersign."""

__version__ = "1.1.0"
