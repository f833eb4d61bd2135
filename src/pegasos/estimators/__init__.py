"""The estimators: the way from parameters and rows to fitted attributes."""
