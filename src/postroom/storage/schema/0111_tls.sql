-- How a mail went to the server that took it: none, opportunistic or mta-sts; null where none outside did.
alter table deliveries add column tls text;
