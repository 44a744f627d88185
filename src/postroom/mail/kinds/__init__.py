"""The kind of a mail: from a person, a machine, a bulk sender, or a report."""
