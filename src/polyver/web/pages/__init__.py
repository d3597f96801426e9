"""The HTML of the page, built from the data that `/api` returns."""

from polyver.web.pages._dependents import dependent_page, dependents_page
from polyver.web.pages._elements import PageLayout, problem_page
from polyver.web.pages._lineage import lineage_page, why_page
from polyver.web.pages._overview import overview_page
from polyver.web.pages._rollouts import rollout_page, rollouts_page
from polyver.web.pages._runs import run_page, runs_page

__all__ = [
    "PageLayout",
    "dependent_page",
    "dependents_page",
    "lineage_page",
    "overview_page",
    "problem_page",
    "rollout_page",
    "rollouts_page",
    "run_page",
    "runs_page",
    "why_page",
]
