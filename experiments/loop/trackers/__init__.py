"""The closed loop in TensorBoard, Weights & Biases and trackio, read from the files of a run."""
