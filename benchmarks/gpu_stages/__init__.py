"""What the GPU script measures, a file for each kind of stage."""
