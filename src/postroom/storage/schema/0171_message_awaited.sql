-- The message that an answer is expected to, for lists of messages.
create index threads_awaiting_message on threads (awaiting_message) where awaiting_message is not null;
