"""What the user sees: tables, sentences, charts. It takes records, never options."""
