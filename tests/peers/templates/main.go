// Asks Go's text/template, with the functions of sprig and the few that Helm has beside them, what
// templates render to. Reads a list of questions as JSON and writes a list of answers.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

type question struct {
	Template string          `json:"template"`
	Data     json.RawMessage `json:"data"`
	Missing  string          `json:"missing,omitempty"`
}

type answer struct {
	Output *string `json:"output,omitempty"`
	Phase  string  `json:"phase,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// functions are those of sprig and of Helm; what depends on chance in the order of maps is sorted.
func functions() template.FuncMap {
	found := sprig.TxtFuncMap()
	found["toYaml"] = func(value any) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	found["fromYaml"] = func(text string) (any, error) {
		var value map[string]any
		err := yaml.Unmarshal([]byte(text), &value)
		return value, err
	}
	found["required"] = func(message string, value any) (any, error) {
		if value == nil || value == "" {
			return nil, errors.New(message)
		}
		return value, nil
	}
	keys := found["keys"].(func(...map[string]any) []string)
	found["keys"] = func(dicts ...map[string]any) []string {
		all := []string{}
		for _, dict := range dicts {
			some := keys(dict)
			sort.Strings(some)
			all = append(all, some...)
		}
		return all
	}
	found["values"] = func(dict map[string]any) []any {
		names := keys(dict)
		sort.Strings(names)
		all := []any{}
		for _, name := range names {
			all = append(all, dict[name])
		}
		return all
	}
	return found
}

// typed turns numbers into int64 where they are written without a point, and into float64 else.
func typed(value any) any {
	switch value := value.(type) {
	case json.Number:
		if !strings.ContainsAny(value.String(), ".eE") {
			if number, err := value.Int64(); err == nil {
				return number
			}
		}
		number, _ := value.Float64()
		return number
	case []any:
		for place := range value {
			value[place] = typed(value[place])
		}
	case map[string]any:
		for name := range value {
			value[name] = typed(value[name])
		}
	}
	return value
}

func data(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(err)
	}
	return typed(value)
}

func ask(asked question) (said answer) {
	defer func() {
		if problem := recover(); problem != nil {
			said = answer{Phase: "render", Error: fmt.Sprint(problem)}
		}
	}()
	missing := asked.Missing
	if missing == "" {
		missing = "error"
	}
	var made *template.Template
	known := functions()
	known["include"] = func(name string, value any) (string, error) {
		var text strings.Builder
		err := made.ExecuteTemplate(&text, name, value)
		return text.String(), err
	}
	made, err := template.New("t").Option("missingkey=" + missing).Funcs(known).Parse(asked.Template)
	if err != nil {
		return answer{Phase: "parse", Error: err.Error()}
	}
	var output bytes.Buffer
	if err := made.Execute(&output, data(asked.Data)); err != nil {
		return answer{Phase: "render", Error: err.Error()}
	}
	text := string([]rune(output.String()))
	return answer{Output: &text}
}

func main() {
	time.Local = time.UTC
	if len(os.Args) > 1 {
		names := []string{}
		for name := range sprig.TxtFuncMap() {
			names = append(names, name)
		}
		sort.Strings(names)
		_ = json.NewEncoder(os.Stdout).Encode(names)
		return
	}
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		panic(err)
	}
	answers := make([]answer, len(questions))
	for place, asked := range questions {
		answers[place] = ask(asked)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(answers)
}
