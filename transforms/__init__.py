"""How rows move: PTransforms over parts, readers, decoders and text kernels."""
