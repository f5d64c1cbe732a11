"""The API documentation that the store serves: the OpenAPI description, the manual and a page for each type of problem.
The health endpoint is here too."""
