"""Plans: what agents propose and people approve."""
