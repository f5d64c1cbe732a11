"""What describes the service to one caller: commands, models, and the OpenAPI document."""
