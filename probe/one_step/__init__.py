"""The operations of one step of the training: what each takes, and which of them need not be."""
