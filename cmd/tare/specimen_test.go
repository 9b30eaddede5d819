package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

// specimen is the program that the scripts' studies compare: a server that
// answers hello, or its second argument, after spinning for as long as its first
// says.
func specimen() {
	var spin time.Duration
	body := "hello"
	if len(os.Args) > 1 {
		spin, _ = time.ParseDuration(os.Args[1])
	}
	if len(os.Args) > 2 {
		body = os.Args[2]
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		for begun := time.Now(); time.Since(begun) < spin; {
		}
		fmt.Fprint(w, body)
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Getenv("TARE_ADDR"), nil))
	os.Exit(1)
}
