"""The machine around the cards: what an engine needs of it beside GPUs."""
