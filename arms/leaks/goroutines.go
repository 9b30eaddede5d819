package main

import "net/http"

// replicas is how many are asked; the first to answer is enough.
const replicas = 2

// ended asks replicas that can always leave their answer, and end.
func ended(w http.ResponseWriter, _ *http.Request) {
	answers := make(chan string, replicas)
	for range replicas {
		go func() { answers <- body }()
	}
	reply(w, <-answers)
}

// unread asks replicas whose second answer nobody reads: the channel has no room
// for it, so its goroutine stays.
func unread(w http.ResponseWriter, _ *http.Request) {
	answers := make(chan string)
	for range replicas {
		go func() {
			answers <- body // leaks: channel
		}()
	}
	reply(w, <-answers)
}

// endless asks one that waits for more questions: its select has no case for the
// end of the request, and no default.
func endless(w http.ResponseWriter, _ *http.Request) {
	questions, again, answers := make(chan int), make(chan int), make(chan string)
	go func() {
		for {
			select { // leaks: select
			case <-questions:
				answers <- body
			case <-again:
				answers <- body
			}
		}
	}()
	questions <- 1
	reply(w, <-answers)
}
