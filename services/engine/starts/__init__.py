"""An engine's starts: how long each phase takes, what is kept of earlier ones and told of them by the log, what stands
in the way of the next.
"""
