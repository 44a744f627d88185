"""The dashboard: pages for the person responsible for the agents."""
