"""Events and webhooks, over REST."""
