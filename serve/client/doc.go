// Package client sends requests to other services, with deadlines, repeated attempts
// and hedging, around any http.RoundTripper.
//
// A [Client] is an http.RoundTripper itself. It promises:
//
//   - The request's deadline bounds all of it: attempts, waits and the answer's body. A
//     request without one gets Options.Timeout. No wait is begun that the deadline would
//     end: the caller gets the last answer or error at once.
//   - Nothing that could have been done is done twice, unless it may be. Repeated are
//     methods that RFC 9110 calls idempotent, requests with an Idempotency-Key, and
//     requests for which no connection could be made, or none was free of those that
//     package transport may open. Their bodies come from GetBody;
//     a request whose body cannot be had anew is sent once.
//   - Repeats are a bounded share of the requests, for each host: an upstream in trouble
//     gets no storm. Waits double, at random lengths, so that clients do not come back at
//     the same time.
//   - Retry-After is honoured. If it asks for more than Options.RetryAfter, the answer goes
//     to the caller, as does the last answer when no attempt is left.
//   - No body is read into memory.
//
// Repeated are 429, 502, 503 and 504, and errors of connections. An answer whose header
// has come is never repeated: what goes wrong in its body is the caller's.
//
// Hosts share 64 budgets by a hash of their names, so that memory is bounded. Limits: a
// host can use up what another one with the same hash saved.
//
// [NewTransport] is http.Transport set up for services. Package breaker stands below a
// Client, so that it sees each attempt. Package clienttest finds bodies that nobody read.
//
// Cost: a request that has a deadline and needs one attempt allocates nothing.
package client
