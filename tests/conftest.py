pytest_plugins = ["tests.rigs.fakenvml.fixtures"]
