"""Tests of pages may open them in a browser."""

from tests.browser import browser, open_page

__all__ = ["browser", "open_page"]
