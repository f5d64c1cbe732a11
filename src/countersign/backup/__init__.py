"""Creates, verifies and restores backups. A backup is one encrypted archive of a whole installation, made while the
installation is in use."""
