"""The parts that all results share, and their wording."""
