// Client asks a webhook as API servers do, which are written in Go: the same request again and
// again, over connections that stay open. It says "ready" when all are warm, goes on when it is
// sent a line, and says "done" at the end.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
)

const warm = 3

func main() {
	url := flag.String("url", "", "where the webhook is")
	file := flag.String("body", "", "the file with what is sent")
	connections := flag.Int("connections", 1, "how many are open")
	requests := flag.Int("requests", 1, "how many are sent over each")
	flag.Parse()
	body, err := os.ReadFile(*file)
	if err != nil {
		log.Fatal(err)
	}
	begin := make(chan struct{})
	var ready, done sync.WaitGroup
	for range *connections {
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			client := &http.Client{Transport: &http.Transport{
				// API servers speak HTTP/1.1 with the webhooks of services.
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}},
			}}
			for range warm {
				ask(client, *url, body)
			}
			ready.Done()
			<-begin
			for range *requests {
				ask(client, *url, body)
			}
		}()
	}
	ready.Wait()
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		log.Fatal(err)
	}
	close(begin)
	done.Wait()
	fmt.Println("done")
}

func ask(client *http.Client, url string, body []byte) {
	answer, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		log.Fatal(answer.Status)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		log.Fatal(err)
	}
}
