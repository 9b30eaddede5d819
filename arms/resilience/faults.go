package main

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// script says when the upstreams are bad: in each period after being well for a time. In
// the study that is a moment, as more failures than two in a hundred requests would void a
// trial.
type script struct {
	begun     time.Time
	well, bad time.Duration
}

const (
	period = time.Second
	stall  = 300 * time.Millisecond
	share  = 5 // one in so many fails
)

func (s script) isBad() bool {
	at := time.Since(s.begun) % period
	return s.well <= at && at < s.well+s.bad
}

// faults make the upstreams of each path: the ith of them.
var faults = map[string]func(i int, s script) http.Handler{
	"/one": func(i int, s script) http.Handler {
		return answering(func() bool { return i > 0 || !s.isBad() })
	},
	"/slow": func(_ int, s script) http.Handler {
		return answering(func() bool {
			if s.isBad() {
				time.Sleep(stall)
			}
			return true
		})
	},
	"/share": func(_ int, s script) http.Handler {
		return answering(func() bool { return !s.isBad() || rand.N(share) > 0 })
	},
}

// answering answers with 500 unless healthy says that all is well.
func answering(healthy func() bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !healthy() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		reply(w, body)
	})
}
