"""The foundation of every service, without any term of the domain."""
