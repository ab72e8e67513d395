"""What a person does with a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


class Page:
    """A page in the browser."""

    def __init__(self, browser: Any, address: str | Path) -> None:
        self.browser = browser
        self.address = address.resolve().as_uri() if isinstance(address, Path) else address
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get(self.address)

    def all(self, selector: str) -> list[Any]:
        found: list[Any] = self.browser.find_elements("css selector", selector)
        return found

    def one(self, selector: str) -> Any:
        return self.browser.find_element("css selector", selector)

    def until(self, true: Callable[[], Any], what: str) -> None:
        """Wait for something that the page does by itself."""
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.browser, 10, poll_frequency=0.02).until(lambda _: true(), what)

    @property
    def said(self) -> str:
        return str(self.one(".said").text)

    @property
    def rows(self) -> list[str]:
        """The text of every row that is shown."""
        return [row.text for row in self.all("#table tbody tr[data-place]")]

    def search(self, text: str, expected: str) -> None:
        field = self.one("#tools input")
        field.clear()
        field.send_keys(text)
        self.until(lambda: self.said == expected, f"a search that finds {expected}")

    def choose(self, label: str, option: str) -> None:
        """Choose in the filter whose first option says `label`."""
        from selenium.webdriver.support.ui import Select

        selects = self.all("#tools select")
        select = next(s for s in selects if s.get_attribute("aria-label") == label)
        Select(select).select_by_visible_text(option)

    def press(self, *keys: str) -> None:
        self.browser.switch_to.active_element.send_keys(*keys)

    def open(self, place: int) -> Any:
        """Click a row of those shown; the panel, once it is there."""
        self.all("#table tbody tr[data-place]")[place].click()
        return self.panel()

    def panel(self) -> Any:
        self.until(lambda: self.all("#panel:not([hidden]) h2"), "the panel")
        return self.one("#panel")

    def script(self, text: str) -> Any:
        return self.browser.execute_script(text)

    def complaints(self) -> list[str]:
        """What the browser logged: errors, and everything the policy stopped."""
        return [entry["message"] for entry in self.browser.get_log("browser")]
