from tests.estimators.conftest import fitted

__all__ = ["fitted"]
