"""The OpenAPI documents: complete in themselves, and the same as the real server's in all facts."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.cases import load_given
from tests.kube.record import transcript
from tests.kube.server.openapi_facts import RECORDED, facts_of, of_kind, of_server, references

from polyver.kube.objects.builtin import builtin_kinds, shape_of
from polyver.kube.objects.kinds import CUSTOM_VERBS, ResourceKind, Subresource
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.server.openapi import CustomSchema, OpenApi
from polyver.testing import LocalCluster

BUILT_IN = builtin_kinds()
PATHS = sorted({f"apis/{k.api_version}" if k.group else f"api/{k.api_version}" for k in BUILT_IN})
METHODS = ("get", "put", "post", "delete", "patch")
META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def plain(document: object) -> Any:
    """What a client reads."""
    return json.loads(msgspec.json.encode(document))


def built_in(group: str, version: str, kind: str) -> Shape | None:
    try:
        return shape_of(group, version, kind)
    except KeyError:
        return None


def custom(group: str, **parts: Any) -> ResourceKind:
    parts = {"verbs": CUSTOM_VERBS, "custom": True, "namespaced": True, **parts}
    return ResourceKind(group, "v1", "Widget", "widgets", "widget", **parts)


def of_custom(
    schema: Any, *, kind: ResourceKind | None = None, selectable: tuple[str, ...] = ()
) -> OpenApi:
    """The documents about one custom kind in the group ex.io."""
    found = CustomSchema(schema, selectable)
    return OpenApi(
        [kind or custom("ex.io")],
        schema_of=lambda group, version, name: (
            found if name == "Widget" else built_in(group, version, name)
        ),
    )


def widgets(group: str) -> OpenApi:
    """The kind that the cases begin with."""
    (document,) = load_given("widgets")
    assert isinstance(document.value, dict)
    version: Any = document.value["spec"]["versions"][0]
    scale = Subresource("scale", group="autoscaling", version="v1", kind="Scale")
    return of_custom(
        version["schema"]["openAPIV3Schema"],
        kind=custom(group, subresources=(Subresource("status"), scale)),
        selectable=tuple(each["jsonPath"] for each in version["selectableFields"]),
    )


API = OpenApi(BUILT_IN, schema_of=built_in)
DOCUMENTS = {path: plain(API.document(path)) for path in PATHS}
SWAGGER = plain(API.swagger())


def operations(paths: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for path, item in paths.items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def wordless(value: Any) -> Any:
    """Plain data without descriptions."""
    if isinstance(value, dict):
        kept = {key: wordless(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if key != "description"}
    return [wordless(item) for item in value] if isinstance(value, list) else value


def recorded(case: str) -> Any:
    found = transcript(case)
    assert found is not None
    return found[0]["body"]


# Built-in kinds


@pytest.mark.parametrize("path", PATHS)
def test_every_reference_leads_somewhere(path: str) -> None:
    document = DOCUMENTS[path]
    assert set(references(document)) <= set(document["components"]["schemas"])


def test_every_reference_in_swagger_leads_somewhere() -> None:
    assert set(references(SWAGGER)) <= set(SWAGGER["definitions"])


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: f"{kind.api_version}-{kind.kind}")
def test_every_kind_has_a_schema_that_says_whose_it_is(kind: ResourceKind) -> None:
    path = f"apis/{kind.api_version}" if kind.group else f"api/{kind.api_version}"
    schemas = DOCUMENTS[path]["components"]["schemas"]
    for found in (schemas, SWAGGER["definitions"]):
        name = of_kind(found, kind.group, kind.version, kind.kind)
        assert name.endswith(f".{kind.version}.{kind.kind}")
        assert {"apiVersion", "kind", "metadata"} <= set(found[name]["properties"])
        assert found[name]["description"]
        for field, schema in found[name]["properties"].items():
            assert schema["description"], f"{field} of {name} is not explained"


KNOWN = {
    # Only servers that share their watches among several have it.
    (f"{META}ListMeta", "shardInfo"),
    # A strategic merge patch replaces it; shapes cannot say that of an object yet.
    ("io.k8s.api.policy.v1.PodDisruptionBudgetSpec", "selector"),
}
MISSING = {f"{META}ShardInfo"}


FACTS: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("name", sorted(FACTS.keys() - MISSING))
def test_a_type_has_the_real_servers_fields(name: str) -> None:
    documents = (document["components"]["schemas"] for document in DOCUMENTS.values())
    schemas = next(found for found in documents if name in found)
    ours, real = facts_of(schemas, [name])[name], copy.deepcopy(FACTS[name])
    for owner, field in KNOWN:
        if owner == name:
            ours["fields"].pop(field, None)
            real["fields"].pop(field)
    assert ours == real


@pytest.mark.kube
def test_the_real_server_says_what_is_recorded() -> None:
    with LocalCluster() as cluster:
        assert of_server(cluster, BUILT_IN) == FACTS


def test_a_type_that_contains_itself_ends() -> None:
    schemas = DOCUMENTS["apis/apiextensions.k8s.io/v1"]["components"]["schemas"]
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    assert name in set(references(schemas[name]))


def test_a_patch_strategy_may_stand_beside_a_reference() -> None:
    schemas = DOCUMENTS["apis/apps/v1"]["components"]["schemas"]
    strategy = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"]
    assert strategy == {
        "allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}],
        "x-kubernetes-patch-strategy": "retainKeys",
    }


def test_types_of_other_groups_keep_their_names() -> None:
    schemas = DOCUMENTS["apis/apps/v1"]["components"]["schemas"]
    template = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["template"]
    assert template == {"$ref": "#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec"}


# Paths


def test_kubectl_finds_what_it_looks_for_in_every_patch() -> None:
    wanted = {"dryRun", "fieldManager", "fieldValidation", "force"}
    patches = [
        operation
        for document in DOCUMENTS.values()
        for _, method, operation in operations(document["paths"])
        if method == "patch"
    ]
    assert len(patches) > 50
    assert all({each["name"] for each in patch["parameters"]} == wanted for patch in patches)


def test_whoever_writes_may_try_it_first() -> None:
    wanted = {"dryRun", "fieldManager", "fieldValidation"}
    for document in DOCUMENTS.values():
        for path, method, operation in operations(document["paths"]):
            shared = document["paths"][path].get("parameters", [])
            names = {each["name"] for each in [*operation.get("parameters", ()), *shared]}
            assert method not in ("post", "put") or wanted <= names


@pytest.mark.parametrize("path", PATHS)
def test_verbs_and_operations_are_the_same(path: str) -> None:
    actions = {"get", "list", "post", "put", "patch", "delete", "deletecollection"}
    named = {"create": "post", "update": "put", "watch": "list"}
    document = DOCUMENTS[path]
    for kind in BUILT_IN:
        if path not in (f"apis/{kind.api_version}", f"api/{kind.api_version}"):
            continue
        found = {
            operation["x-kubernetes-action"]
            for where, _, operation in operations(document["paths"])
            if where.endswith((f"/{kind.plural}", f"/{kind.plural}/{{name}}"))
        }
        assert found == {named.get(verb, verb) for verb in kind.verbs} & actions


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [each["operationId"] for _, _, each in operations(SWAGGER["paths"])]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("path", "method", "name"),
    [
        ("/api/v1/configmaps", "get", "listCoreV1ConfigMapForAllNamespaces"),
        ("/api/v1/namespaces", "get", "listCoreV1Namespace"),
        ("/api/v1/namespaces/{name}/finalize", "put", "replaceCoreV1NamespaceFinalize"),
        (
            "/api/v1/namespaces/{namespace}/configmaps",
            "delete",
            "deleteCoreV1CollectionNamespacedConfigMap",
        ),
        (
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
            "get",
            "readAppsV1NamespacedDeploymentScale",
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}",
            "put",
            "replaceRbacAuthorizationV1ClusterRole",
        ),
    ],
)
def test_operations_have_the_real_servers_names(path: str, method: str, name: str) -> None:
    assert SWAGGER["paths"][path][method]["operationId"] == name


def test_a_scale_is_known_as_one() -> None:
    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"
    operation = DOCUMENTS["apis/apps/v1"]["paths"][path]["put"]
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert operation["x-kubernetes-group-version-kind"] == scale
    assert set(references(operation)) == {"io.k8s.api.autoscaling.v1.Scale"}


def test_a_built_in_kind_is_patched_as_recorded() -> None:
    path = 'paths."/api/v1/namespaces/{namespace}/configmaps/{name}".patch'
    real = wordless(recorded("openapi-of-built-in-kinds")[path])
    for response in real["responses"].values():
        # This server takes protobuf, and answers in JSON and YAML alone.
        response.get("content", {}).pop("application/vnd.kubernetes.protobuf", None)
    ours = DOCUMENTS["api/v1"]["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"]
    assert wordless(ours) == real


def test_only_built_in_kinds_take_strategic_merge_patches() -> None:
    strategic = "application/strategic-merge-patch+json"
    ours = SWAGGER["paths"]["/api/v1/namespaces/{name}"]["patch"]
    theirs = plain(widgets("ex.io").swagger())["paths"]
    (patch,) = [
        operation
        for path, method, operation in operations(theirs)
        if method == "patch" and path.endswith("{name}")
    ]
    assert strategic in ours["consumes"]
    assert strategic not in patch["consumes"]
    assert "application/apply-patch+yaml" in patch["consumes"]


# Custom kinds


def test_a_custom_kind_is_described_as_recorded() -> None:
    group = "openapi-of-a-custom-kind.ex.io"
    real = recorded("openapi-of-a-custom-kind")
    document = plain(widgets(group).document(f"apis/{group}/v1"))
    schemas = document["components"]["schemas"]
    name = "io.ex.openapi-of-a-custom-kind.v1.Widget"
    assert wordless(schemas[name]) == wordless(real[f'components.schemas."{name}"'])
    assert document["info"] == real["info"]
    assert document["openapi"] == real["openapi"]
    path = f"/apis/{group}/v1/namespaces/{{namespace}}/widgets/{{name}}"
    item = wordless(document["paths"][path])
    assert item["parameters"] == wordless(real[f'paths."{path}".parameters'])
    assert item["patch"] == wordless(real[f'paths."{path}".patch'])
    assert set(references(document)) <= set(schemas)


def test_the_words_of_a_custom_kind_are_its_own() -> None:
    spec = {"type": "object", "description": "Our spec."}
    schema = {"type": "object", "description": "Our kind.", "properties": {"spec": spec}}
    document = plain(of_custom(schema).document("apis/ex.io/v1"))
    shown = document["components"]["schemas"]["io.ex.v1.Widget"]
    assert shown["description"] == "Our kind."
    assert shown["properties"]["spec"] == spec


def test_metadata_is_the_servers_even_if_a_schema_restricts_it() -> None:
    name = {"type": "string", "maxLength": 5}
    metadata = {"type": "object", "properties": {"name": name}}
    schema = {"type": "object", "properties": {"metadata": metadata}}
    document = plain(of_custom(schema).document("apis/ex.io/v1"))
    shown = document["components"]["schemas"]["io.ex.v1.Widget"]["properties"]["metadata"]
    assert list(references(shown)) == [f"{META}ObjectMeta"]


SCHEMAS_IN_V2 = {
    "nullable": ({"type": "string", "nullable": True, "maxLength": 3}, {}),
    "default": ({"type": "integer", "default": 3}, {"type": "integer"}),
    "number or text": (
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-int-or-string": True},
    ),
    "open": (
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"a": {"type": "string"}},
        },
        {"x-kubernetes-preserve-unknown-fields": True},
    ),
    "one of": (
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"type": "object"},
    ),
    "limits": (
        {"type": "string", "minLength": 2, "pattern": "^a"},
        {"type": "string", "minLength": 2, "pattern": "^a"},
    ),
    "list": (
        {"type": "array", "items": {"type": "string", "default": "x"}},
        {"type": "array", "items": {"type": "string"}},
    ),
}


@pytest.mark.parametrize(("given_schema", "wanted"), SCHEMAS_IN_V2.values(), ids=SCHEMAS_IN_V2)
def test_swagger_leaves_out_what_it_cannot_say(
    given_schema: dict[str, Any], wanted: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": {"spec": given_schema}}
    definitions = plain(of_custom(schema).swagger())["definitions"]
    assert definitions["io.ex.v1.Widget"]["properties"]["spec"] == wanted


def test_swagger_says_nothing_of_a_kind_that_takes_everything() -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    shown = plain(of_custom(schema).swagger())["definitions"]["io.ex.v1.Widget"]
    assert set(shown) == {"type", "x-kubernetes-group-version-kind"}


def test_a_kind_outside_of_namespaces_has_no_namespace_in_its_paths() -> None:
    api = of_custom({"type": "object"}, kind=custom("ex.io", namespaced=False))
    document = plain(api.document("apis/ex.io/v1"))
    assert set(document["paths"]) == {"/apis/ex.io/v1/widgets", "/apis/ex.io/v1/widgets/{name}"}
    item = document["paths"]["/apis/ex.io/v1/widgets/{name}"]
    assert [each["name"] for each in item["parameters"]] == ["name", "pretty"]


scalars = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "format": "int32", "default": 1},
        {"type": "boolean", "nullable": True},
        {"x-kubernetes-int-or-string": True},
        {"type": "object", "x-kubernetes-embedded-resource": True},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    ]
)
# Fields may be called like words of the schema language.
names = st.sampled_from(["a", "b", "$ref", "default", "allOf", "properties", "items"])


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.dictionaries(names, inner, max_size=3).map(
            lambda fields: {"type": "object", "properties": fields}
        ),
        inner.map(lambda items: {"type": "array", "items": items}),
        inner.map(lambda values: {"type": "object", "additionalProperties": values}),
    )


schemas = st.recursive(scalars, _containers, max_leaves=8)
BEYOND_V2 = {"allOf", "anyOf", "oneOf", "not", "nullable", "default"}


def places(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and all schemas inside of it."""
    yield schema
    inner: Iterable[Any] = schema.get("properties", {}).values()
    for each in [*inner, schema.get("items"), schema.get("additionalProperties")]:
        if isinstance(each, dict):
            yield from places(each)


@given(schemas)
def test_any_schema_makes_complete_documents(spec: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"spec": spec}}
    before = copy.deepcopy(schema)
    api = of_custom(schema)
    document, swagger = plain(api.document("apis/ex.io/v1")), plain(api.swagger())
    assert schema == before
    assert set(references(document)) <= set(document["components"]["schemas"])
    assert set(references(swagger)) <= set(swagger["definitions"])
    shown = swagger["definitions"]["io.ex.v1.Widget"]
    assert not any(BEYOND_V2 & set(place) for place in places(shown))


# The index


def test_the_index_leads_to_every_document() -> None:
    index = plain(API.index())["paths"]
    assert list(index) == PATHS
    for path, entry in index.items():
        assert entry == {"serverRelativeURL": f"/openapi/v3/{path}?hash={API.hash(path)}"}


def test_a_hash_changes_with_the_schema_and_with_nothing_else() -> None:
    first = of_custom({"type": "object"})
    same = of_custom({"type": "object"})
    other = of_custom({"type": "object", "description": "New."})
    selectable = of_custom({"type": "object"}, selectable=(".spec.a",))
    hashes = [api.hash("apis/ex.io/v1") for api in (first, same, other, selectable)]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_a_hash_changes_with_the_names_of_a_kind() -> None:
    plain_kind, short = custom("ex.io"), custom("ex.io", short_names=("wd",))
    hashes = {of_custom({}, kind=kind).hash("apis/ex.io/v1") for kind in (plain_kind, short)}
    assert len(hashes) == 2


def test_the_order_in_which_kinds_came_makes_no_difference() -> None:
    backwards = OpenApi(reversed(BUILT_IN), schema_of=built_in)
    assert backwards.index() == API.index()
    assert plain(backwards.document("apis/apps/v1")) == DOCUMENTS["apis/apps/v1"]


@pytest.mark.parametrize("path", ["", "api", "api/v2", "apis/none.io/v1", "apis/apps"])
def test_there_is_no_document_where_nothing_is_served(path: str) -> None:
    assert API.document(path) is None
