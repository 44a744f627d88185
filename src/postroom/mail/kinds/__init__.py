"""What kind of mail it is: from a person, a machine, a sender to many, or a report."""
