"""What a person keeps for himself: passkeys, and the devices that ring."""
