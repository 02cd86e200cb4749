"""The engine of device="onnx": models as graphs that are traced from their own code and run by ONNX Runtime."""
