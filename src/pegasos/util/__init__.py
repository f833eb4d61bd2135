"""What every room uses and no room owns: threads, files replaced whole, names imported when used, numbers as text."""
