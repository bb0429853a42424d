"""`gpuwatch lab`: a program in short turns with one change each, and what each change gives."""
