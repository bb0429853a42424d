"""Memory that grows, and what makes it grow."""
