"""What is written of a screen for others: report, JSON, and a picture of its cells."""
