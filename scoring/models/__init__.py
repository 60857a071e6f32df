"""Models: find, load, encode, cut into windows, run as torch or ONNX."""
