"""The commands of ``replica-validate``, a module each."""
