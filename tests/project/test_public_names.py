"""The public contract, against the file that states it: a change is made there, on purpose.

If one is meant: ``python -m tests.project.public_names``, and a line in the changelog.
"""

import json

import pytest

import replica
import validation

from . import public_names

KNOWN = json.loads(public_names.PATH.read_text())


def test_names_and_parameters():
    assert public_names.packages() == KNOWN["packages"]


def test_completion_offers_what_is_for_users():
    assert set(dir(replica)) == {*replica.__all__, "plotting", "reference"}
    assert set(dir(validation)) == {*validation.__all__, "mixtures"}


@pytest.mark.slow
def test_what_functions_return():
    assert public_names.results(replica, validation) == KNOWN["results"]


def test_options():
    found = {name: public_names.options(app) for name, (app, _) in public_names.programs().items()}
    assert found == KNOWN["options"]


@pytest.mark.parametrize("name", public_names.LINES)
def test_keys_of_documents_and_columns_of_files(name):
    document, files = public_names.told(name)
    assert document == KNOWN["documents"][name]
    assert files == KNOWN["files"].get(name, {})
