"""How every two cards reach each other, drawn twice: as a matrix and as a map."""
