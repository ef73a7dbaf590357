"""What training maximizes, and the exact last layer."""
