"""What an account, a pod or an inbox may do: how much, with whom, and when a person is asked first."""
