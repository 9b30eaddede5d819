package main

import (
	"io"
	"net/http"
	"sync"
)

const turns = 200

// deferInLoop keeps a deferred call for each turn until the function ends.
func deferInLoop() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var locks [turns]sync.Mutex
		lockAll(locks[:])
		io.WriteString(w, "hello\n")
	})
}

func lockAll(locks []sync.Mutex) {
	for i := range locks {
		locks[i].Lock()
		defer locks[i].Unlock()
	}
}

// deferInCall has each turn end with its own.
func deferInCall() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var locks [turns]sync.Mutex
		for i := range locks {
			lockOne(&locks[i])
		}
		io.WriteString(w, "hello\n")
	})
}

func lockOne(mu *sync.Mutex) {
	mu.Lock()
	defer mu.Unlock()
}
