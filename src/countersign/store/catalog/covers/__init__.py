"""Placeholder covers of products that have no cover of their own: one SVG, the same bytes for the same product."""
