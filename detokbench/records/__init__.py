"""Result files: their schema and their storage."""
