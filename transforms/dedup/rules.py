"""Every reason for which stage `dedup` drops a row; none is a rule with a threshold of its own."""

REASONS = {
    "duplicate_exact": "exact duplicate: a row with the same text and media is kept",
    "duplicate_near": "near duplicate: a row with almost the same text is kept",
}
