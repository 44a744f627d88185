"""The interface that the packages `agentmail` speak, below /v0: other words for the same verbs and rows."""
