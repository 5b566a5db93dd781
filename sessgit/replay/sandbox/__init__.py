"""The isolated processes in which cells run again."""
