"""The commands of ``replica``, a module each."""
