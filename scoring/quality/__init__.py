"""The quality head: values of the text, additive model, labels and their agreement."""
