"""The peer Tryton: a module with the model lead; it goes among the modules of Tryton's own venv."""
