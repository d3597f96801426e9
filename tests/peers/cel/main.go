// What the libraries that Kubernetes uses for rules in CEL say to our expressions.
//
// Reads questions from standard input, one JSON document, and writes the answers: what does not
// compile and why, of what type an expression is, what it is worth and what it costs. With the
// argument "functions" it lists the functions that there are.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type group struct {
	Schema   json.RawMessage `json:"schema"`
	Root     bool            `json:"root"`
	Self     any             `json:"self"`
	OldSelf  any             `json:"oldSelf"`
	Optional bool            `json:"optionalOldSelf"`
	Rules    []string        `json:"rules"`
}

type answer struct {
	Rule   string  `json:"rule"`
	Issues string  `json:"issues,omitempty"`
	Type   string  `json:"type,omitempty"`
	Least  uint64  `json:"least,omitempty"`
	Most   string  `json:"most,omitempty"`
	Value  any     `json:"value,omitempty"`
	Failed string  `json:"failed,omitempty"`
	Cost   *uint64 `json:"cost,omitempty"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "functions" {
		write(functions())
		return
	}
	var groups []group
	decoder := json.NewDecoder(os.Stdin)
	if err := decoder.Decode(&groups); err != nil {
		fail(err)
	}
	answers := make([][]answer, 0, len(groups))
	for _, each := range groups {
		answers = append(answers, ask(each))
	}
	write(answers)
}

func write(value any) {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func base() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
}

func functions() []string {
	var lines []string
	for name, function := range base().NewExpressionsEnv().Functions() {
		for _, each := range function.OverloadDecls() {
			text := name + " " + each.ID() + " "
			if each.IsMemberFunction() {
				text += "."
			}
			text += "("
			for number, arg := range each.ArgTypes() {
				if number > 0 {
					text += ", "
				}
				text += checker.FormatCELType(arg)
			}
			lines = append(lines, text+") "+checker.FormatCELType(each.ResultType()))
		}
	}
	sort.Strings(lines)
	return lines
}

func ask(question group) []answer {
	place := structural(question.Schema)
	declared := model.SchemaDeclType(place, question.Root).MaybeAssignTypeName("selfType")
	old := declared.CelType()
	if question.Optional {
		old = types.NewOptionalType(old)
	}
	set, err := base().Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable("self", declared.CelType()), cel.Variable("oldSelf", old),
		},
		DeclTypes: []*apiservercel.DeclType{declared},
	})
	if err != nil {
		fail(err)
	}
	if question.Root {
		place = model.WithTypeAndObjectMeta(place)
	}
	values := map[string]any{"self": schemacel.UnstructuredToVal(whole(question.Self), place)}
	if question.OldSelf != nil {
		values["oldSelf"] = schemacel.UnstructuredToVal(whole(question.OldSelf), place)
		if question.Optional {
			values["oldSelf"] = types.OptionalOf(values["oldSelf"].(ref.Val))
		}
	} else if question.Optional {
		values["oldSelf"] = types.OptionalNone
	}
	estimator := &library.CostEstimator{SizeEstimator: &sizes{declared}}
	answers := make([]answer, 0, len(question.Rules))
	for _, rule := range question.Rules {
		answers = append(answers, evaluate(set.NewExpressionsEnv(), estimator, rule, values))
	}
	return answers
}

func structural(raw json.RawMessage) *schema.Structural {
	var given v1.JSONSchemaProps
	if err := json.Unmarshal(raw, &given); err != nil {
		fail(err)
	}
	var internal apiextensions.JSONSchemaProps
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&given, &internal, nil); err != nil {
		fail(err)
	}
	made, err := schema.NewStructural(&internal)
	if err != nil {
		fail(err)
	}
	return made
}

// whole turns numbers without a fraction into integers, as the API server reads them.
func whole(value any) any {
	switch found := value.(type) {
	case float64:
		if found == math.Trunc(found) && math.Abs(found) < 1e18 {
			return int64(found)
		}
	case []any:
		for number := range found {
			found[number] = whole(found[number])
		}
	case map[string]any:
		for key := range found {
			found[key] = whole(found[key])
		}
	}
	return value
}

func evaluate(env *cel.Env, estimator *library.CostEstimator, rule string, values map[string]any) answer {
	said := answer{Rule: rule}
	ast, issues := env.Compile(rule)
	if issues != nil && issues.Err() != nil {
		said.Issues = issues.String()
		return said
	}
	said.Type = checker.FormatCELType(ast.OutputType())
	program, err := env.Program(ast, cel.CostLimit(1000000), cel.CostTracking(estimator))
	if err != nil {
		said.Issues = "program: " + err.Error()
		return said
	}
	cost, err := env.EstimateCost(ast, estimator)
	if err != nil {
		fail(err)
	}
	said.Least, said.Most = cost.Min, strconv.FormatUint(cost.Max, 10)
	value, details, err := program.Eval(values)
	said.Cost = details.ActualCost()
	if err != nil {
		said.Failed = err.Error()
		return said
	}
	said.Value = shown(value)
	return said
}

// shown is a value with its type, in JSON.
func shown(value ref.Val) any {
	name := value.Type().TypeName()
	switch found := value.(type) {
	case types.Bool:
		return map[string]any{"bool": bool(found)}
	case types.Int:
		return map[string]any{"int": strconv.FormatInt(int64(found), 10)}
	case types.Uint:
		return map[string]any{"uint": strconv.FormatUint(uint64(found), 10)}
	case types.Double:
		return map[string]any{"double": strconv.FormatFloat(float64(found), 'g', -1, 64)}
	case types.String:
		return map[string]any{"string": string(found)}
	case types.Bytes:
		return map[string]any{"bytes": fmt.Sprintf("%x", []byte(found))}
	case types.Null:
		return map[string]any{"null": true}
	case types.Duration:
		return map[string]any{"duration": strconv.FormatInt(int64(found.Duration), 10)}
	case types.Timestamp:
		return map[string]any{"timestamp": found.Time.Format("2006-01-02T15:04:05.999999999Z07:00")}
	case *types.Type:
		return map[string]any{"type": found.TypeName()}
	case *types.Optional:
		if !found.HasValue() {
			return map[string]any{"none": true}
		}
		return map[string]any{"optional": shown(found.GetValue())}
	case traits.Lister:
		items := []any{}
		for each := found.Iterator(); each.HasNext() == types.True; {
			items = append(items, shown(each.Next()))
		}
		return map[string]any{"list": items}
	case traits.Mapper:
		var pairs [][2]any
		for each := found.Iterator(); each.HasNext() == types.True; {
			key := each.Next()
			if key == nil { // a field that the schema does not know
				continue
			}
			pairs = append(pairs, [2]any{shown(key), shown(found.Get(key))})
		}
		sort.Slice(pairs, func(i, j int) bool { return fmt.Sprint(pairs[i][0]) < fmt.Sprint(pairs[j][0]) })
		return map[string]any{"map": pairs}
	case apiservercel.Quantity:
		return map[string]any{name: found.Quantity.String()}
	case *apiservercel.Quantity:
		return map[string]any{name: found.Quantity.String()}
	case apiservercel.URL:
		return map[string]any{name: found.URL.String()}
	case apiservercel.IP:
		return map[string]any{name: found.Addr.String()}
	case apiservercel.CIDR:
		return map[string]any{name: found.Prefix.String()}
	case apiservercel.Semver:
		return map[string]any{name: found.Version.String()}
	}
	return map[string]any{name: true}
}

// sizes tells how large the values at a place of the schema may be.
type sizes struct {
	root *apiservercel.DeclType
}

func (s *sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if len(element.Path()) == 0 {
		return nil
	}
	at := s.root
	for _, name := range element.Path()[1:] {
		switch name {
		case "@items", "@values":
			at = at.ElemType
		case "@keys":
			at = at.KeyType
		default:
			field, ok := at.Fields[name]
			if !ok {
				return nil
			}
			at = field.Type
		}
		if at == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(at.MaxElements)}
}

func (s *sizes) EstimateCallCost(_, _ string, _ *checker.AstNode, _ []checker.AstNode) *checker.CallEstimate {
	return nil
}
