// Package middleware is the overview of the packages below it: a stack for services on
// the open internet. Each is a func(http.Handler) http.Handler, works on any server, and
// is cheapest in a chain of package chain on package serve.
//
// In this order, outermost first:
//
//   - recovery answers 500 when a handler panics.
//   - requestid gives each request an identifier.
//   - clientaddr finds the client's address behind proxies.
//   - accesslog writes a line for each request.
//   - metrics counts and times requests for Prometheus.
//   - tracing makes spans for OpenTelemetry: module serve/tracing.
//   - flight keeps what the execution tracer saw before a slow request.
//   - secure adds the header fields by which browsers protect users.
//   - cors says which sites' scripts may call.
//   - ipfilter admits or refuses clients by their address.
//   - limit bounds bodies, fields, and requests in flight.
//   - ratelimit refuses clients that ask too often.
//     Module serve/redislimit does so for all processes of a service.
//   - timeout gives each request a deadline.
//   - jwt admits requests with a signed token, basicauth with a password, apikey with a key.
//   - queue answers 202 and does the work later.
//   - static serves files.
//
// Package client/breaker is a middleware too: it keeps requests from a handler that fails.
// It stands between ratelimit and timeout.
//
// Module serve/compress has two that need libraries of others: compress and decompress.
//
// A chain refuses an order that is not safe when it is built, with the reason. The
// example is a whole stack.
package middleware
