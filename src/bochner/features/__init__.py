"""Random features: base frequencies, and how frequencies are treated."""
