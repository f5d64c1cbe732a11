"""The records service: business records worked by generated commands, agents proposing, people approving."""
