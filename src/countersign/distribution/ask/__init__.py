"""Questions in plain words, answered from the public catalog alone."""
