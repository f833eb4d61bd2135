"""The sparse machines that the papers compare with, a file for each."""
