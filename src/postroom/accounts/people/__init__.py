"""People: users of an account, how they sign in, and the programs they authorize."""
