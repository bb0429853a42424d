"""Many ranks on several GPUs: what watching them costs, and that nothing breaks or hangs unseen."""
