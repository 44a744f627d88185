"""Personal settings: passkeys, and devices to notify."""
