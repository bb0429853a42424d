"""What a monitor hands to other programs: metrics to scrape, to push and to log."""
