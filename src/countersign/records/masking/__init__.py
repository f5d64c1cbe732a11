"""Placeholder tokens: their computation and replacement, and the vault of value ids behind them."""
