"""What works on this machine and what does not: one check a part that gpudeck and its engines lean on."""
