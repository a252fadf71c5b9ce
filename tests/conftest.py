import pytest
from hypothesis import settings

# The rigs assert too, and a bare AssertionError tells nobody what was seen.
pytest.register_assert_rewrite("tests.rigs.demo_units", "tests.rigs.at_the_panel", "tests.rigs.small_engines")

pytest_plugins = ["tests.rigs.fakenvml.fixtures"]

# No test asserts a time: a busy machine takes longer for the same example.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
