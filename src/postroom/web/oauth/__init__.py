"""Sign-in for programs: OAuth 2.1 for MCP, and codes for programs without a browser."""
