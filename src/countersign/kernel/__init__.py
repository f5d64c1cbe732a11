"""What every service stands on; speaks no domain word."""
