"""The box's cards, live: one widget for all of them."""
