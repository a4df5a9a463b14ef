"""Pages hold everything inside, and what is foreign stays text."""

import json
import re

from phalanx.show.drawing.page import asset, data_element, page, text

EVIL = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>"


def test_foreign_text_is_escaped_also_in_attributes() -> None:
    assert text("<b a='\"'>&") == "&lt;b a=&#x27;&quot;&#x27;&gt;&amp;"


def test_data_cannot_end_its_element_and_comes_back_as_it_was() -> None:
    element = data_element("run", {"name": EVIL})
    assert element.count("<") == 2
    packed = re.fullmatch(r"<script[^>]*>(.*)</script>", element)
    assert packed is not None
    assert json.loads(packed[1]) == {"name": EVIL}


def test_a_page_names_nothing_to_fetch_and_shows_a_hostile_title_as_text() -> None:
    whole = page(EVIL, f"<h1>{text(EVIL)}</h1>", data={"run": EVIL}, libraries=["'</script>'"])
    assert "<img" not in whole
    assert whole.count("</script>") == 2  # of the data and the library
    assert not re.search(r"(src|href)=", whole.replace("src=x", ""))
    assert asset("base.css") in whole
    assert "default-src &#x27;none&#x27;" in whole
