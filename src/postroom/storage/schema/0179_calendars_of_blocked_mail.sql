-- What an invitation that was not let in would change in the calendar, as JSON.
alter table blocked_mails add column calendar text;
