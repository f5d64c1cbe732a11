"""Entitlements: who owns what; granting, revoking, listing."""
