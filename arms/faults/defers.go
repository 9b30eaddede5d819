package main

import (
	"io"
	"net/http"
	"sync"
)

const turns = 200

// deferInLoop keeps a deferred call for each turn until the function ends.
func deferInLoop() http.Handler {
	var locks [turns]sync.RWMutex // of no request's own: they would be a fault of another kind
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		lockAll(locks[:])
		io.WriteString(w, "hello\n")
	})
}

func lockAll(locks []sync.RWMutex) {
	for i := range locks {
		locks[i].RLock()
		defer locks[i].RUnlock()
	}
}

// deferInCall has each turn end with its own.
func deferInCall() http.Handler {
	var locks [turns]sync.RWMutex
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range locks {
			lockOne(&locks[i])
		}
		io.WriteString(w, "hello\n")
	})
}

func lockOne(mu *sync.RWMutex) {
	mu.RLock()
	defer mu.RUnlock()
}
