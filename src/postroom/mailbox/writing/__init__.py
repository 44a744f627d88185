"""Templates for mails."""
