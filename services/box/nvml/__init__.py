"""This machine's cards through NVML, NVIDIA's own library, by way of pynvml."""

from gpudeck.services.box.nvml.source import NvmlSource

__all__ = ["NvmlSource"]
