"""Files of models: our own, LIBLINEAR's, LIBSVM's, ONNX."""
