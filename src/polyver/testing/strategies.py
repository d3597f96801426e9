"""Hypothesis strategies for property tests of your own kinds; needs hypothesis.

from polyver.testing.strategies import objects_from_schema

@given(objects_from_schema(schema, api_version="ex.io/v1", kind="Widget"))
def test_conversion_keeps_everything(widget): ...
"""

from polyver.apis.trials.strategies import objects_from_schema

__all__ = ["objects_from_schema"]
