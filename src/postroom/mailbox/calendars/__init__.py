"""What is there to read in calendars: calendars, their events, when these take place, and free time."""
