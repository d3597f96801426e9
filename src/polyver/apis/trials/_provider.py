"""A source of choices for Hypothesis that depends on the seed alone.

By default, Hypothesis also uses strings and numbers from the source of loaded local modules. After
an unrelated import, the same seed would then give other objects. polyver instead takes the
constants from the functions and rules of the conversion itself (see
`polyver.apis.checking.words_of`).
"""

from __future__ import annotations

from typing import Any

from hypothesis.internal.conjecture import providers
from hypothesis.internal.conjecture.choice import choice_permitted

__all__ = ["BACKEND"]

BACKEND = "polyver"


class _SeededProvider(providers.HypothesisProvider):
    """Hypothesis' own choices and unusual values, without constants from modules."""

    def _maybe_draw_constant(self, choice_type: Any, constraints: Any, *, p: float = 0.05) -> Any:
        assert self._random is not None
        if self._random.random() > p:
            return None
        unusual = providers.GLOBAL_CONSTANTS.set_for_type(choice_type)
        permitted = [each for each in unusual if choice_permitted(each, constraints)]
        return self._random.choice(permitted) if permitted else None


providers.AVAILABLE_PROVIDERS[BACKEND] = f"{__name__}.{_SeededProvider.__name__}"
