"""The reference model: a small causal transformer and its optimizer."""
