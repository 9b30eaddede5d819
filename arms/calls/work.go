package main

import (
	"context"
	"fmt"
	"net/http"
)

const works = "wait, queue or queue-bounded"

const (
	hoarded = 1 << 20 // calls that the queue without a stated bound holds
	bounded = 1 << 10 // calls that the other holds
)

// worker returns what a request to / does with its call. With a queue it answers
// once the call is queued, and as many goroutines as there may be calls at once
// work the queue off. It answers 200, as the arm that waits does, where 202 would be
// right. A full queue is waited for.
func (s *service) worker(o options) (func(http.ResponseWriter, *http.Request), error) {
	slots := make(chan struct{}, max(o.slots, 1))
	length := bounded
	switch o.work {
	case "wait":
		if o.slots == 0 {
			return s.called, nil
		}
		return func(w http.ResponseWriter, r *http.Request) {
			slots <- struct{}{}
			defer func() { <-slots }()
			s.called(w, r)
		}, nil
	case "queue":
		length = hoarded
	case "queue-bounded":
	default:
		return nil, fmt.Errorf("work %q: want %s", o.work, works)
	}
	queue := make(chan string, length)
	for range max(o.slots, 1) {
		go func() {
			for path := range queue {
				_, _ = s.client(context.Background(), s.url+path) // nobody waits for what it says
			}
		}()
	}
	return func(w http.ResponseWriter, r *http.Request) {
		queue <- r.URL.Path
		reply(w, body)
	}, nil
}
