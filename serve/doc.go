// Package serve is an HTTP server that takes the place of http.Server.
//
// It runs unmodified http.Handlers and middleware at half to three quarters of the CPU
// that http.Server takes for a request, by machine and load (docs/serve.md). Moving
// over is one line:
//
//	srv := &serve.Server{Addr: ":8080", Handler: mux} // was http.Server
//
// HTTP/1.1 is an engine of its own; HTTP/2 connections (by ALPN, or unencrypted
// with prior knowledge) go to the standard library's server. A connection has a
// goroutine while there is something to do on it; idle for half a second it gives
// up its goroutine and buffers and waits in the kernel's poller (Linux).
//
// A GET costs three allocations if it has no header field but Host, four with up
// to eight more and six with a browser's twelve, and two more if its answer sets a
// field. A handler may keep all of them. With Server.Reuse it costs none, and
// handlers must keep nothing.
//
// What is promised: for the same handler and request the same bytes as
// http.Server, but for the deliberate differences that serve/testdata/differences.md
// lists. What is not: speed for HTTP/2, which is the standard
// library's; HTTP/3.
package serve
