"""What every request is checked for before anything is done: its key, its rate, its size, its site."""
