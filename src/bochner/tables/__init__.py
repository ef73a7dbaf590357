"""Tables of named columns as people have them: files and frames read by passes, encoded as numbers."""
