"""Sentences with numbers say what their records say."""

import pytest

from benchmarks.claims import CLAIMS, INDEX, ROOT, index


@pytest.mark.parametrize("claim", CLAIMS, ids=[f"{i}-{c.experiment}" for i, c in enumerate(CLAIMS)])
def test_the_page_has_the_sentence_that_the_records_give(claim):
    assert claim.is_on_its_page(), f"{claim.page} should say: {claim.written()}"


def test_the_index_is_up_to_date():
    assert (ROOT / INDEX).read_text(encoding="utf-8") == index(), (
        "run `python -m benchmarks claims`"
    )
