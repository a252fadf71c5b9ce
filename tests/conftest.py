from hypothesis import settings

pytest_plugins = ["tests.rigs.fakenvml.fixtures"]

# No test asserts a time: a busy machine takes longer for the same example.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
