"""The board: cards are moved between the pool, pipeline stages (columns) and TP ranks (rows)."""
