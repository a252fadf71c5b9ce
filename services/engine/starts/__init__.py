"""An engine's starts: how long each phase takes, what is kept of earlier ones, what stands in the way of the next."""
