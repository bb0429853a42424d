"""The probe into a process that runs already, by what its own interpreter offers for it."""
