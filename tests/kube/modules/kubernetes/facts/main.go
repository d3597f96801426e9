// Prints what the built-in types of Kubernetes are, as far as requests and replies show it: their
// fields, the names, numbers and types of these, and how patches treat them. No descriptions.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	storage "k8s.io/api/storage/v1"
	storagemigration "k8s.io/api/storagemigration/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

var roots = []any{
	core.Namespace{}, core.ConfigMap{}, core.Secret{}, core.ServiceAccount{}, core.Event{},
	core.Pod{}, core.Service{}, core.PersistentVolumeClaim{}, core.PersistentVolume{},
	core.LimitRange{}, core.ResourceQuota{}, core.Node{}, core.Endpoints{},
	apps.Deployment{}, apps.ReplicaSet{}, apps.StatefulSet{}, apps.DaemonSet{},
	apps.ControllerRevision{},
	batch.Job{}, batch.CronJob{},
	networking.Ingress{}, networking.IngressClass{}, networking.NetworkPolicy{},
	rbac.Role{}, rbac.RoleBinding{}, rbac.ClusterRole{}, rbac.ClusterRoleBinding{},
	autoscalingv2.HorizontalPodAutoscaler{}, autoscalingv1.HorizontalPodAutoscaler{},
	autoscalingv1.Scale{},
	policy.PodDisruptionBudget{}, storage.StorageClass{}, discovery.EndpointSlice{},
	coordination.Lease{}, events.Event{}, apiextensions.CustomResourceDefinition{},
	authorization.SelfSubjectAccessReview{}, authorization.SelfSubjectRulesReview{},
	authorization.SubjectAccessReview{}, authorization.LocalSubjectAccessReview{},
	authentication.SelfSubjectReview{}, authentication.TokenReview{}, authentication.TokenRequest{},
	apiregistration.APIService{},
	storagemigration.StorageVersionMigration{},
	admission.MutatingWebhookConfiguration{}, admission.ValidatingWebhookConfiguration{},
	meta.DeleteOptions{}, meta.Status{},
}

type field struct {
	Name     string   `json:"name,omitempty"`
	Type     string   `json:"type"`
	Number   int      `json:"number,omitempty"`
	Omit     string   `json:"omit,omitempty"`
	Required bool     `json:"required,omitempty"`
	Atomic   bool     `json:"atomic,omitempty"`
	List     string   `json:"list,omitempty"`
	Keys     []string `json:"keys,omitempty"`
	Merges   bool     `json:"merges,omitempty"`
	MergeKey string   `json:"merge_key,omitempty"`
	Retains  bool     `json:"retains,omitempty"`
	Replaces bool     `json:"replaces,omitempty"`
	Default  any      `json:"default,omitempty"`
}

type named struct {
	// What the type is but for its name; "custom" where it reads and writes JSON itself, and
	// nothing for a struct with fields.
	Is     string  `json:"is,omitempty"`
	Atomic bool    `json:"atomic,omitempty"`
	Fields []field `json:"fields,omitempty"`
}

var (
	types       = map[string]named{}
	definitions = openapi.GetOpenAPIDefinitions(func(name string) spec.Ref { return spec.Ref{} })
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	marshaler   = reflect.TypeFor[json.Marshaler]()
)

func main() {
	for _, root := range roots {
		visit(reflect.TypeOf(root))
	}
	names := make([]string, 0, len(types))
	for name := range types {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Println("{")
	for i, name := range names {
		end := ","
		if i == len(names)-1 {
			end = ""
		}
		printType(name, types[name], end)
	}
	fmt.Println("}")
}

func printType(name string, found named, end string) {
	if len(found.Fields) == 0 {
		fmt.Printf("%s: %s%s\n", text(name), text(found), end)
		return
	}
	atomic := ""
	if found.Atomic {
		atomic = `"atomic": true, `
	}
	fmt.Printf("%s: {%s\"fields\": [\n", text(name), atomic)
	for i, each := range found.Fields {
		comma := ","
		if i == len(found.Fields)-1 {
			comma = ""
		}
		fmt.Printf("  %s%s\n", text(each), comma)
	}
	fmt.Printf("]}%s\n", end)
}

// visit notes a type and all that it is made of.
func visit(t reflect.Type) {
	switch {
	case t.Name() == "" || t.PkgPath() == "":
		switch t.Kind() {
		case reflect.Map:
			visit(t.Key())
			visit(t.Elem())
		case reflect.Pointer, reflect.Slice, reflect.Array:
			visit(t.Elem())
		}
		return
	case seen(t):
		return
	}
	pointer := reflect.PointerTo(t)
	found := named{Is: "custom"}
	types[name(t)] = found
	switch {
	case pointer.Implements(unmarshaler) || pointer.Implements(marshaler):
		// Whoever uses the facts has to know these.
	case t.Kind() == reflect.Struct:
		found = structOf(t)
	default:
		found = named{Is: underlying(t)}
		if t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
			visit(t.Elem())
		}
	}
	types[name(t)] = found
}

func seen(t reflect.Type) bool {
	_, found := types[name(t)]
	return found
}

func structOf(t reflect.Type) named {
	schema := schemaOf(t)
	found := named{Atomic: schema.Extensions["x-kubernetes-map-type"] == "atomic"}
	for i := range t.NumField() {
		member := t.Field(i)
		json, options, _ := strings.Cut(member.Tag.Get("json"), ",")
		if json == "-" || !member.IsExported() {
			continue
		}
		visit(member.Type)
		if json == "" && !member.Anonymous {
			fail("%s.%s has no name in JSON", t, member.Name)
		}
		found.Fields = append(found.Fields, fieldOf(member, json, options, schema))
	}
	if len(found.Fields) == 0 {
		found.Is = "empty"
	}
	return found
}

func fieldOf(member reflect.StructField, name, options string, schema spec.Schema) field {
	described := schema.Properties[name]
	extensions := described.Extensions
	strategy := strings.Split(member.Tag.Get("patchStrategy"), ",")
	found := field{
		Name:     name,
		Type:     typeText(member.Type),
		Number:   number(member),
		Omit:     omit(strings.Split(options, ",")),
		Required: name != "" && slices.Contains(schema.Required, name),
		Atomic:   extensions["x-kubernetes-map-type"] == "atomic",
		Merges:   slices.Contains(strategy, "merge"),
		Retains:  slices.Contains(strategy, "retainKeys"),
		Replaces: slices.Contains(strategy, "replace"),
		MergeKey: member.Tag.Get("patchMergeKey"),
	}
	if kind, is := extensions["x-kubernetes-list-type"].(string); is {
		found.List = kind
	}
	if keys, is := extensions["x-kubernetes-list-map-keys"].([]any); is {
		for _, key := range keys {
			found.Keys = append(found.Keys, key.(string))
		}
	}
	if value := described.Default; value != nil && !empty(value) {
		found.Default = value
	}
	return found
}

func empty(value any) bool {
	found := reflect.ValueOf(value)
	return found.IsZero() || (found.Kind() == reflect.Map && found.Len() == 0)
}

func omit(options []string) string {
	var found []string
	for _, each := range []string{"empty", "zero"} {
		if slices.Contains(options, "omit"+each) {
			found = append(found, each)
		}
	}
	return strings.Join(found, " ")
}

func number(member reflect.StructField) int {
	parts := strings.Split(member.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0
	}
	found, err := strconv.Atoi(parts[1])
	if err != nil {
		fail("%s: %v", member.Name, err)
	}
	return found
}

func schemaOf(t reflect.Type) spec.Schema {
	named, is := reflect.New(t).Elem().Interface().(interface{ OpenAPIModelName() string })
	if !is {
		fail("%s has no name in OpenAPI", t)
	}
	definition, found := definitions[named.OpenAPIModelName()]
	if !found {
		fail("%s is not in OpenAPI", t)
	}
	if v2, is := definition.Schema.Extensions[common.ExtensionV2Schema].(spec.Schema); is {
		return v2
	}
	return definition.Schema
}

func name(t reflect.Type) string {
	parent, last := path.Split(t.PkgPath())
	return path.Join(path.Base(parent), last) + "." + t.Name()
}

// typeText is a type as Go's errors write it, with two parts of its package's path for one.
func typeText(t reflect.Type) string {
	if t.Name() != "" && t.PkgPath() != "" {
		return name(t)
	}
	return underlying(t)
}

func underlying(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + typeText(t.Elem())
	case reflect.Slice:
		return "[]" + typeText(t.Elem())
	case reflect.Map:
		return "map[" + typeText(t.Key()) + "]" + typeText(t.Elem())
	case reflect.Struct, reflect.Interface:
		fail("%s cannot be written", t)
	}
	return t.Kind().String()
}

func text(value any) string {
	encoder := &strings.Builder{}
	if err := json.NewEncoder(encoder).Encode(value); err != nil {
		fail("%v", err)
	}
	return strings.TrimSpace(encoder.String())
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", values...)
	os.Exit(1)
}
