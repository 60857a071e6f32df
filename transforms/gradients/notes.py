"""What `gradient_note` says of a row that has no gradients."""

NO_TEXT = "no text"
TOO_SHORT = "too short"
NOT_FINITE = "non-finite gradient"
ZERO = "zero gradient"
NOT_SAMPLED = "not in the proxy sample"
PROXY = "proxy"  # what the seeded choice of rows is for
