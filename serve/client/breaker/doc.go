// Package breaker keeps calls from what fails, for a while.
//
// A [Breaker] opens after so many failures in a row, or when a share of the requests of
// a sliding window failed. A request that takes longer than Options.Slow counts as failed.
// Open, it refuses requests for Options.Out. Then it is half open: one request at a time
// tries, until Options.Probes have succeeded in a row. If one fails it opens for twice as
// long, up to Options.MostOut. The time begins anew once the breaker was closed for as
// long as it had been open.
//
// There are three ways to use it, which share all of that:
//
//   - [NewTransport] guards each host that a client calls. Place it below client.Client,
//     so that each attempt counts.
//   - [Breaker.Middleware] guards a handler.
//   - [Group] guards the members of a balanced set. At most a share of them is out at a
//     time, so that a failure of all of them, or of what they depend on, leaves some.
//
// Options.Fallback answers what is refused. Without it a transport returns an
// [OpenError], and a middleware answers 503 with Retry-After.
//
// A request whose caller went away counts neither as failed nor as succeeded, unless it
// was slow. A transport looks at the answer's header alone: what its body becomes does not
// count.
//
// Limits: a member is measured against the options, not against the others' mean. What
// one process learns the others do not know.
//
// Place in a chain: inside of limit and cache, whose answers do not say how the handler
// fares, and outside of timeout, whose answers do.
//
// Cost: one lock a request, and no allocation by the breaker itself.
package breaker
