"""The module of the peer Tryton, with the model lead. It is copied to the modules of Tryton's own virtual
environment."""
