// Package ask answers questions about the conversion methods of API types: it reads a list of
// objects, each with the version to convert it to, and writes what the methods return.
package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"reflect"
	"strings"
)

// Kind is one kind with the types of its versions. Types of other versions than the hub have the
// methods ConvertTo and ConvertFrom, with or without a context as the first argument.
type Kind struct {
	Hub      string
	Versions map[string]any                           // a pointer to the zero value of the type of each version
	Convert  func(object any, to string) (any, error) // instead of methods
}

// Context is the first argument of methods that take one.
var Context = context.Background()

type question struct {
	Kind   string          `json:"kind"`
	Object json.RawMessage `json:"object"`
	To     string          `json:"to"`
}

type answer struct {
	Object any    `json:"object,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Main answers the questions on standard input.
func Main(kinds map[string]Kind) {
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		log.Fatal(err)
	}
	answers := []answer{}
	for _, each := range questions {
		converted, err := each.converted(kinds)
		if err != nil {
			answers = append(answers, answer{Error: err.Error()})
		} else {
			answers = append(answers, answer{Object: converted})
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatal(err)
	}
}

func (q question) converted(kinds map[string]Kind) (result any, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("panic: %v", failure)
		}
	}()
	kind, known := kinds[q.Kind]
	if !known {
		return nil, fmt.Errorf("no kind %s", q.Kind)
	}
	var header struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(q.Object, &header); err != nil {
		return nil, err
	}
	group, version, _ := strings.Cut(header.APIVersion, "/")
	object := kind.empty(version)
	if err := json.Unmarshal(q.Object, object); err != nil {
		return nil, err
	}
	converted, err := kind.convert(object, version, q.To)
	if err != nil {
		return nil, err
	}
	return plain(converted, group+"/"+q.To, header.Kind)
}

func (k Kind) empty(version string) any {
	return reflect.New(reflect.TypeOf(k.Versions[version]).Elem()).Interface()
}

func (k Kind) convert(object any, from, to string) (any, error) {
	if k.Convert != nil {
		return k.Convert(object, to)
	}
	if from != k.Hub && from != to {
		hub := k.empty(k.Hub)
		if err := call(object, "ConvertTo", hub); err != nil {
			return nil, err
		}
		object, from = hub, k.Hub
	}
	if from != to {
		spoke := k.empty(to)
		if err := call(spoke, "ConvertFrom", object); err != nil {
			return nil, err
		}
		object = spoke
	}
	return object, nil
}

// call calls a method with the other object, after a context if the method takes one.
func call(object any, method string, other any) error {
	function := reflect.ValueOf(object).MethodByName(method)
	arguments := []reflect.Value{reflect.ValueOf(other)}
	if function.Type().NumIn() == 2 {
		arguments = append([]reflect.Value{reflect.ValueOf(Context)}, arguments...)
	}
	if err, failed := function.Call(arguments)[0].Interface().(error); failed {
		return err
	}
	return nil
}

// plain is the JSON of an object, with the type that a webhook sets.
func plain(object any, apiVersion, kind string) (map[string]any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	result := map[string]any{}
	if err := json.Unmarshal(data, &result); err != nil {
		return nil, err
	}
	result["apiVersion"], result["kind"] = apiVersion, kind
	return result, nil
}
