"""Placeholder tokens: computed both ways, swapped, and the vault of value ids behind them."""
