"""Commands about approval rules, budgets, pauses and notifications, and signing in by a code."""
