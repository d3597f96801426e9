// Command kubeobjects answers questions with the types of Kubernetes itself, so that tests can
// compare: how objects of each kind look in protobuf and in JSON, what a strategic merge patch makes
// of them, and how bytes that are no objects are refused.
package main

import (
	"encoding/json"
	"log"
	"os"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type questions struct {
	Kinds   []metav1.TypeMeta `json:"kinds"`
	Broken  [][]byte          `json:"broken"`
	Patches []patching        `json:"patches"`
}

type answers struct {
	Objects []*encoded `json:"objects"`
	Broken  []*refused `json:"broken"`
	Patches []*patched `json:"patches"`
}

func main() {
	var asked questions
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		log.Fatal(err)
	}
	known := runtime.NewScheme()
	all := []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme,
	}
	for _, add := range all {
		if err := add(known); err != nil {
			log.Fatal(err)
		}
	}
	var given answers
	for _, kind := range asked.Kinds {
		given.Objects = append(given.Objects, encodings(known, kind.GroupVersionKind())...)
	}
	for _, body := range asked.Broken {
		given.Broken = append(given.Broken, decoding(known, body))
	}
	for _, each := range asked.Patches {
		if answer := each.answered(known); answer != nil {
			given.Patches = append(given.Patches, answer)
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(given); err != nil {
		log.Fatal(err)
	}
}
