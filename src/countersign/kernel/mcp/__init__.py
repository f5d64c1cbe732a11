"""The Model Context Protocol for a server that offers tools: stateless, over Streamable HTTP."""
