"""Many ranks are one job: what their collectives show."""
