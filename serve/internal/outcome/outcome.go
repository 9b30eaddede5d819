// Package outcome says with which status and length a request is logged, counted and traced.
package outcome

import (
	"context"
	"net/http"
)

// clientGone is the status of a request whose client did not wait for an answer, as nginx
// notes it.
const clientGone = 499

// Recorder knows what was sent. That of a chain is one.
type Recorder interface {
	Status() int // 0: nothing
	Bytes() int64
	Hijacked() bool
}

// Status returns what the client got, once the handler has returned or panicked. A handler that
// wrote nothing has 200 sent, and one that panicked 500, by package recovery. 101 is a connection
// that was taken over.
func Status(r *http.Request, rec Recorder, panicked bool) int {
	switch {
	case rec.Status() != 0:
		return rec.Status()
	case rec.Hijacked():
		return http.StatusSwitchingProtocols
	case r.Context().Err() == context.Canceled:
		return clientGone
	case panicked:
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

// Bytes returns how long the body was that the client got. To HEAD none is sent, whatever the handler
// wrote.
func Bytes(r *http.Request, rec Recorder) int64 {
	if r.Method == http.MethodHead {
		return 0
	}
	return rec.Bytes()
}
