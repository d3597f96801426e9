// Command peers answers questions with the libraries that Kubernetes itself uses, so that tests
// can compare. It reads {"yaml": [...], "kube": [...], "semver": [...]} and writes the answers.
package main

import (
	"encoding/json"
	"log"
	"os"
	"sort"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"
)

type questions struct {
	YAML   []string `json:"yaml"`
	Kube   []string `json:"kube"`
	SemVer []string `json:"semver"`
}

type reading struct {
	Text  string          `json:"text"`
	Value json.RawMessage `json:"value,omitempty"`
	Error bool            `json:"error,omitempty"`
}

type answers struct {
	YAML    []reading  `json:"yaml"`
	Kube    [][]string `json:"kube"`
	SemVer  [][]string `json:"semver"`
	Refused []string   `json:"refused"`
}

func main() {
	var asked questions
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		log.Fatal(err)
	}
	var given answers
	for _, text := range asked.YAML {
		given.YAML = append(given.YAML, read(text))
	}
	given.Kube = ranked(asked.Kube, version.CompareKubeAwareVersionStrings)
	var accepted []string
	for _, text := range asked.SemVer {
		if _, err := semver.StrictNewVersion(text); err != nil {
			given.Refused = append(given.Refused, text)
		} else {
			accepted = append(accepted, text)
		}
	}
	given.SemVer = ranked(accepted, func(a, b string) int {
		return semver.MustParse(a).Compare(semver.MustParse(b))
	})
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(given); err != nil {
		log.Fatal(err)
	}
}

func read(text string) reading {
	value, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return reading{Text: text, Error: true}
	}
	return reading{Text: text, Value: value}
}

// ranked sorts texts, the highest first; equal ones share a rank.
func ranked(texts []string, compare func(a, b string) int) [][]string {
	sort.SliceStable(texts, func(i, j int) bool { return compare(texts[i], texts[j]) > 0 })
	var ranks [][]string
	for i, text := range texts {
		if i > 0 && compare(texts[i-1], text) == 0 {
			ranks[len(ranks)-1] = append(ranks[len(ranks)-1], text)
		} else {
			ranks = append(ranks, []string{text})
		}
	}
	return ranks
}
