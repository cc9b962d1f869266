"""The pages of the documentation, built once for all tests of this folder."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

PAGES = Path(__file__).parents[2] / "examples" / "pages"


@pytest.fixture(scope="session")
def builder() -> ModuleType:
    """The module that builds the pages; its neighbours are `builder.prose` and the like."""
    pytest.importorskip("pdoc", reason="pdoc makes the pages: extra `test`")
    pytest.importorskip("matplotlib", reason="a page is about pictures: extra `plot`")
    sys.path.insert(0, str(PAGES))
    import build

    return build


@pytest.fixture(scope="session")
def site(builder: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages."""
    folder = tmp_path_factory.mktemp("site")
    builder.build(folder)
    return folder
