"""The key text: what two texts share when only case, digits and punctuation differ."""
