"""What is told of the sessions of programs: their cells, reasons, state, and documents."""
