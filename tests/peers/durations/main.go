// Command durations writes how Kubernetes tells durations to people, around every length at which
// it changes its way of telling.
package main

import (
	"encoding/json"
	"log"
	"os"
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

type answer struct {
	Seconds float64 `json:"seconds"`
	Human   string  `json:"human"`
}

func main() {
	const day = 24 * time.Hour
	const year = 365 * day
	lengths := map[time.Duration]bool{}
	for _, unit := range []time.Duration{time.Second, time.Minute, time.Hour, day, year} {
		for _, many := range []time.Duration{-2, -1, 0, 1, 2, 3, 5, 7, 8, 9, 10, 11, 23, 24, 25, 48, 59, 60, 61, 99, 120, 180, 200} {
			for _, aside := range []time.Duration{-day, -time.Hour, -time.Minute, -time.Second, -time.Second / 2, 0, time.Second / 2, time.Second, time.Minute, time.Hour, day} {
				lengths[many*unit+aside] = true
			}
		}
	}
	answers := []answer{}
	for length := range lengths {
		answers = append(answers, answer{length.Seconds(), duration.HumanDuration(length)})
	}
	sort.Slice(answers, func(i, j int) bool { return answers[i].Seconds < answers[j].Seconds })
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answers); err != nil {
		log.Fatal(err)
	}
}
