"""The front office: pages for the person who answers for the agents."""
