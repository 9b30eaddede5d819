// Package transport is an http.RoundTripper for HTTP/1.1, with TLS and without, that costs little.
//
// A [Transport] has no goroutine for a connection: the caller's writes the request and
// reads the answer. A request's body that is not at hand at once takes a goroutine while
// it is sent. Connections are kept for each host; whether one has ended is looked at
// before a request is sent on it. On Linux sockets are read and written by calls of the
// package's own, and one that waits for an answer holds no buffer.
//
// Options.Conns bounds the connections of a host. Requests beyond wait in a queue, each for
// its turn: one that has waited for too long, or finds the queue full, fails with a [BusyError],
// and nothing of it was sent. KeepWarm has connections be open before requests come.
//
// Answers are read as strictly as serve reads requests (serve/internal/http1): one whose
// length is in doubt is an error, and what follows an answer unasked ends the connection.
// An answer's header has a bound.
//
// It goes on with another connection by itself only where no byte of the request was
// sent. Requests to hosts that choose HTTP/2, and of other schemes than http and https, go to
// Options.Other. Redirects, cookies, proxies of the environment and compression are not its
// business.
//
// A request for 1 KiB takes 0.44 of the processor time that it takes http.Transport, and 9
// allocations to its 43, on 64 connections that are all busy (BenchmarkRoundTrip, median of 8).
//
// A request's header is not looked at any more once RoundTrip has returned; its body may
// be read until the answer's has been closed.
package transport
