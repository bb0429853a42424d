"""The rules for a run without a probe: parts of the samples, never milliseconds of a step."""
