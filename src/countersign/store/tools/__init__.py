"""The store's operations as tools of the Model Context Protocol, made from the routes' declarations."""
