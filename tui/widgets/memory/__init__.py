"""Memory: who holds how much, and where it is heading."""
