"""Operations on connections, deliverability, reports about domains and the list of webhooks."""
