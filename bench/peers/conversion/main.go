// The conversion webhook of controller-runtime with a kind of three versions: over HTTPS, or
// called in this process with a review from a file, for as many rounds as it is told.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

func main() {
	listen := flag.String("listen", "", "the address to serve at")
	cert := flag.String("cert", "", "a file with the certificate")
	key := flag.String("key", "", "a file with its key")
	review := flag.String("review", "", "a file with a review to convert in this process")
	rounds := flag.Int("rounds", 1, "how often")
	flag.Parse()
	handler := conversion.NewWebhookHandler(kinds(), conversion.NewRegistry())
	if *review != "" {
		inProcess(handler, *review, *rounds)
		return
	}
	http.Handle("/convert", handler)
	log.Fatal(http.ListenAndServeTLS(*listen, *cert, *key, nil))
}

func kinds() *runtime.Scheme {
	scheme := runtime.NewScheme()
	group := schema.GroupVersion{Group: "bench.example.com"}
	for version, obj := range map[string]runtime.Object{"v1": &PlanV1{}, "v2": &PlanV2{}, "v3": &PlanV3{}} {
		group.Version = version
		scheme.AddKnownTypeWithName(group.WithKind("Plan"), obj)
	}
	return scheme
}

// inProcess prints the nanoseconds of CPU of each round, and writes the last answer.
func inProcess(handler http.Handler, file string, rounds int) {
	body, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	var answer *httptest.ResponseRecorder
	for range rounds {
		request := httptest.NewRequest(http.MethodPost, "/convert", bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		answer = httptest.NewRecorder()
		began := cpu()
		handler.ServeHTTP(answer, request)
		fmt.Fprintln(os.Stderr, cpu()-began)
	}
	os.Stdout.Write(answer.Body.Bytes())
}

// cpu is what this process has used, its collector included.
func cpu() int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		log.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
