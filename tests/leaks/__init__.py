"""Six training scripts that leak, each at the lines that end in `# LEAK`: what `gpuwatch memory`
must name. On a GPU where there is one. They train until they are stopped."""
