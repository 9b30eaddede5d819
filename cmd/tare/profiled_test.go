package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tarehq/tare/arms/arm"
)

// askable is a specimen that tare can ask for its profiles: a handler behind a
// middleware that spins.
func askable() {
	arm.Main(arm.Options{Handler: Spin(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.Repeat("hello ", 10))
	}))})
}

// Spin takes 100 µs of every request.
func Spin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for begun := time.Now(); time.Since(begun) < 100*time.Microsecond; {
		}
		next.ServeHTTP(w, r)
	})
}
