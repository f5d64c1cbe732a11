"""Tables from declarations, and the way from one declaration to the next."""
