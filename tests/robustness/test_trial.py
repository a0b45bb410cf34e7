"""Random questions that once took too long or failed, asked again."""

import pytest

from tests.robustness.trial_models import apart, drawn

# Rows of three directions; gradients and spectra that saw their clock late; three steps that leave
# noise alone.
FAILED_ONCE = 1060, 1132, 1375, 1454


@pytest.mark.slow
@pytest.mark.parametrize("number", FAILED_ONCE)
def test_questions_that_failed_once(number):
    outcome, fault, seconds, memory = apart(number)
    assert not fault, (drawn(number), outcome, fault, seconds, memory)
