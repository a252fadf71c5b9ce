"""A simulated engine: vLLM's command line, log and HTTP surface without a model, for walking the road without a GPU."""
