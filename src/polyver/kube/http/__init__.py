"""What every server of polyver is made of: listening, health, a log, and files that are kept."""
