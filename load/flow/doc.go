// Package flow loads a service as people do: users who take steps, think, and go on by what
// they were answered.
//
// A file says what users do, see package script. A flow is a list of steps: requests, with checks of
// their answers and values taken from them; think time; conditions; loops with a bound. Each
// user takes one flow from its beginning to its end, which is a session. Users arrive by a
// schedule (open loop), or are a fixed number, each of whom begins again (closed loop).
//
// # What is promised
//
// A request's response time counts from when its user wanted it: the arrival, or the end of
// the step before plus the time to think. So a stall of the server, and lateness of the
// generator, are charged to every user that they delayed. The service time counts from the
// actual start.
//
// A step that goes wrong ends its user's flow, unless the step says go_on: the session has
// failed. Wrong is a request without a whole answer, an answer that fails a check or has
// status 4xx or 5xx where no status is asked for, and a value that could not be taken. A
// request with a field that nothing fills is never sent: it counts as dropped.
//
// What counts is what users do who arrive in the measured part, and steps that fall due in
// it; both are followed beyond its end for the drain. A user who thinks costs no
// goroutine: users wait in a heap for their time.
//
// # When not to use it
//
// Requests travel by net/http over HTTP/1.1. For the highest rates of single requests take
// package load. net/http sends a GET again that a kept connection lost unanswered, as
// browsers do.
package flow
