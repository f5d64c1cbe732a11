"""Countersign: agents act, people countersign."""

__version__ = "1.0.0"
