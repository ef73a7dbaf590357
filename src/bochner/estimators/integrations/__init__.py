"""Other libraries' interfaces to fitted models, one file each."""
