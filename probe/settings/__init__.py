"""How PyTorch is set up in the process, and what the loop uses: read about once a second while
somebody watches, by the training thread, without a patch of its own."""
