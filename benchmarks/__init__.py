"""Speed and accuracy, beside the equations typed literally from the paper."""
