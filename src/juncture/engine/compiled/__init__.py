"""Every compiled routine, and how they are compiled, kept and loaded."""
