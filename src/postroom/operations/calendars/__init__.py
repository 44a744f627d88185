"""Operations on calendars: the calendars of inboxes, their events, and free time."""
