"""What every result has in common, and how it speaks."""
