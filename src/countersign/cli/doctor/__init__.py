"""`countersign doctor`: what the services need, looked at before they need it."""
