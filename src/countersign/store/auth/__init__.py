"""Authentication and authorization: people, organisations, sessions, tokens, OAuth, agents and API keys."""
