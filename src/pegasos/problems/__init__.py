"""The optimisation problems, frozen, and what certifies them."""
