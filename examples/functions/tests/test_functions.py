"""The functions of this project, called as a blueprint calls them."""

import backup_functions
import pytest

from polyver.functions import InvalidArguments, Registry

expired, expired_v010 = Registry.of(backup_functions)


def test_a_rendered_text_is_as_good_as_a_list_and_a_number() -> None:
    assert expired.call(None, {"backups": "[b, a, c]", "keep": "1"}) == {"expired": ["a", "b"]}


def test_arguments_are_checked_before_anything_is_called() -> None:
    with pytest.raises(InvalidArguments, match="keep: expected integer"):
        expired_v010.call(None, {"backups": [], "keep": "few"})
