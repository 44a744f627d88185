"""One generator of hostile messages against every way in and every way out: all readers must agree."""
