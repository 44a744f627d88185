"""Before and after an attempt to deliver mail: what is known of it, whether it may go, and its effects."""
