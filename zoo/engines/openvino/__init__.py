"""The engine of device="openvino": the graphs of `zoo.engines.onnx`, run by OpenVINO on a CPU."""
