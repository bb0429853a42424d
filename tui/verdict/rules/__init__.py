"""The rules on steps, one file a kind. `rulebook` lists them in order."""
