"""One-time codes: what looks like one, stands where one stands, and is named or asked for as one."""
