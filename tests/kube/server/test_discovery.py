"""What clients are told of groups, versions and resources, as the real server tells it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.paths import pick
from tests.kube.record import transcript

from polyver.kube.objects.builtin import builtin_kinds
from polyver.kube.objects.kinds import CUSTOM_VERBS, ResourceKind, Subresource
from polyver.kube.server import discovery

BUILT_IN = builtin_kinds()
ADDRESSES = {"0.0.0.0/0": "127.0.0.1:6443"}
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def widget(group: str) -> ResourceKind:
    return ResourceKind(
        group,
        "v1",
        "Widget",
        "widgets",
        "widget",
        namespaced=True,
        short_names=("wd",),
        categories=("all",),
        verbs=CUSTOM_VERBS,
        subresources=(
            Subresource("scale", group="autoscaling", version="v1", kind="Scale"),
            Subresource("status"),
        ),
        custom=True,
        storage_hash=discovery.storage_version_hash(group, "v1", "Widget"),
    )


def things(group: str, versions: Iterable[str]) -> list[ResourceKind]:
    stored = discovery.storage_version_hash(group, "v1", "Thing")
    return [
        ResourceKind(
            group,
            version,
            "Thing",
            "things",
            "thing",
            namespaced=False,
            verbs=CUSTOM_VERBS,
            custom=True,
            storage_hash=stored,
        )
        for version in versions
    ]


def plain(document: object) -> Any:
    """What a client reads."""
    return json.loads(msgspec.json.encode(document))


def answer(kinds: list[ResourceKind], path: str, *, aggregated: bool = False) -> Any:
    """The document at a path, as a request would find it."""
    match path.strip("/").split("/"):
        case ["api" | "apis" as root] if aggregated:
            return plain(discovery.aggregated_discovery(kinds, core=root == "api"))
        case ["api"]:
            return plain(discovery.api_versions(kinds, addresses=ADDRESSES))
        case ["apis"]:
            return plain(discovery.api_group_list(kinds))
        case ["api", version]:
            return plain(discovery.api_resource_list(kinds, "", version))
        case ["apis", group]:
            return plain(discovery.api_group(kinds, group))
        case ["apis", group, version]:
            return plain(discovery.api_resource_list(kinds, group, version))
    raise AssertionError(path)


def recorded(case: str) -> list[dict[str, Any]]:
    found = transcript(case)
    assert found is not None
    return [step for step in found if step["step"].startswith("GET ") and step["status"] == 200]


def check(case: str, kinds: list[ResourceKind], *, unless: Iterable[str] = ()) -> int:
    """Every answer in a transcript is that of these kinds; how many parts were compared."""
    compared = 0
    for step in recorded(case):
        path = step["step"].removeprefix("GET ").replace("$group", f"{case}.ex.io")
        aggregated = step["headers"]["Content-Type"] == AGGREGATED
        found = answer(kinds, path, aggregated=aggregated)
        for part, value in step["body"].items():
            if part not in unless:
                assert pick(found, part) == value, (path, part)
                compared += 1
    return compared


@pytest.mark.parametrize("case", ["discovery-of-a-custom-kind", "discovery-aggregated"])
def test_a_custom_kind_is_discovered_as_recorded(case: str) -> None:
    assert check(case, [widget(f"{case}.ex.io"), *BUILT_IN]) >= 7


def test_built_in_kinds_are_discovered_as_recorded() -> None:
    # Nobody gives out tokens of service accounts here yet.
    unless = ["resources[name=serviceaccounts/token]"]
    assert check("discovery-of-built-in-kinds", list(BUILT_IN), unless=unless) >= 20


def test_versions_are_in_kube_order_as_recorded() -> None:
    case = "discovery-in-kube-order"
    kinds = things(f"{case}.ex.io", ["odd", "v1alpha2", "v1", "v3beta1", "v11", "v2"])
    assert check(case, [*BUILT_IN, *kinds]) >= 15


def test_plain_discovery_is_as_recorded() -> None:
    # There is no aggregation here, so the group that it is configured by is not the first.
    unless = ["groups[0].name", "serverAddressByClientCIDRs"]
    kinds = [widget("discovery-plain.ex.io"), *BUILT_IN]
    assert check("discovery-plain", kinds, unless=unless) >= 5


def test_the_servers_addresses_are_those_that_were_given() -> None:
    found = answer(list(BUILT_IN), "/api")
    wanted = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]
    assert found["serverAddressByClientCIDRs"] == wanted


def test_built_in_groups_come_in_their_own_order_and_custom_ones_by_name() -> None:
    kinds = [widget("b.ex.io"), widget("a.ex.io"), widget("aaa"), *BUILT_IN]
    random.Random(1).shuffle(kinds)
    names = [group["name"] for group in answer(kinds, "/apis")["groups"]]
    assert names[:4] == ["apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io"]
    assert names[-3:] == ["a.ex.io", "aaa", "b.ex.io"]


def test_nothing_is_found_where_nothing_is_served() -> None:
    kinds = [widget("ex.io")]
    paths = ["/apis/none.io", "/apis/ex.io/v9", "/apis/none.io/v1", "/api/v1", "/api/v2"]
    assert [answer(kinds, path) for path in paths] == [None] * 5
    assert discovery.api_group(BUILT_IN, "") is None


def test_an_older_kubectl_gets_the_same_document_in_its_own_version() -> None:
    old = plain(discovery.aggregated_discovery(BUILT_IN, core=False, version="v2beta1"))
    new = plain(discovery.aggregated_discovery(BUILT_IN, core=False))
    assert old.pop("apiVersion") == "apidiscovery.k8s.io/v2beta1"
    assert new.pop("apiVersion") == "apidiscovery.k8s.io/v2"
    assert old == new


def test_what_is_only_answered_has_no_storage_version() -> None:
    reviews = answer(list(BUILT_IN), "/apis/authorization.k8s.io/v1")["resources"]
    assert [each["name"] for each in reviews if "storageVersionHash" in each] == []


@pytest.mark.parametrize(
    ("group", "version", "kind", "wanted"),
    [
        ("", "v1", "Pod", "xPOwRZ+Yhw8="),
        ("apps", "v1", "Deployment", "8aSe+NMegvE="),
        ("coordination.k8s.io", "v1", "Lease", "gqkMMb/YqFM="),
    ],
)
def test_storage_versions_have_the_real_servers_hashes(
    group: str, version: str, kind: str, wanted: str
) -> None:
    assert discovery.storage_version_hash(group, version, kind) == wanted


custom_kinds = st.builds(
    lambda group, version, name: ResourceKind(
        group, version, name.title(), f"{name}s", name, namespaced=True, custom=True
    ),
    st.sampled_from(["a.io", "b.io", "a.b.io"]),
    st.sampled_from(["v1", "v2", "v10", "v1beta1", "v2alpha1", "odd", "even"]),
    st.sampled_from(["cat", "dog", "ant"]),
)


@given(st.lists(custom_kinds, unique=True), st.randoms())
def test_the_order_does_not_depend_on_the_order_in_which_kinds_came(
    kinds: list[ResourceKind], chance: random.Random
) -> None:
    mixed = [*BUILT_IN, *kinds]
    chance.shuffle(mixed)
    ordered = discovery.in_order(mixed)
    assert ordered == discovery.in_order([*BUILT_IN, *kinds])
    assert sorted(map(str, ordered)) == sorted(map(str, mixed))


@given(st.lists(custom_kinds, unique=True))
def test_every_document_tells_of_the_same_kinds(kinds: list[ResourceKind]) -> None:
    expected = {(kind.group, kind.version, kind.plural) for kind in kinds}
    whole = {
        (group["metadata"]["name"], version["version"], resource["resource"])
        for group in answer(kinds, "/apis", aggregated=True)["items"]
        for version in group["versions"]
        for resource in version["resources"]
    }
    by_group = {
        (group["name"], version["version"], resource["name"])
        for group in answer(kinds, "/apis")["groups"]
        for version in group["versions"]
        for resource in answer(kinds, f"/apis/{version['groupVersion']}")["resources"]
    }
    assert whole == expected
    assert by_group == expected


def test_an_etag_is_quoted_and_changes_with_the_content() -> None:
    one, other = discovery.etag(b"one"), discovery.etag(b"other")
    assert one != other
    assert one == discovery.etag(b"one") == f'"{discovery.content_hash(b"one")}"'


def test_the_version_is_one_that_all_clients_know() -> None:
    found = discovery.version_info()
    assert (found["major"], found["minor"]) == ("1", "35")
    assert found["gitVersion"].startswith("v1.35.0+polyver.")


def test_the_version_can_be_chosen() -> None:
    found = discovery.version_info("v1.30")
    assert (found["minor"], found["emulationMinor"]) == ("30", "30")
    assert found["minCompatibilityMinor"] == "29"
    assert found["gitVersion"].startswith("v1.30.0+polyver.")


def test_the_version_has_the_fields_that_are_recorded() -> None:
    (first, *_) = recorded("version-and-health")
    assert set(first["body"]) <= set(discovery.version_info())
