"""Statistics of the predictive mixture, and what they are worth."""
