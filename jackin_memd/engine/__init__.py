"""The single writer of each database, its readers, and the news of its commits."""
