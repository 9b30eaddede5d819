// Package proxy is a reverse proxy: it forwards requests to upstreams, and their answers back.
//
// A [Pool] is upstreams that can stand in for one another. It knows which of them are
// well, and chooses one for each request. A [Handler] passes requests on to a pool. Words:
// an attempt is one sending of a request to one upstream.
//
// What is promised:
//
//   - No bytes of a message's frame are passed through. Request and answer are read, and
//     written anew: what one side frames otherwise than the other does not reach it.
//     Fields of one hop go no further, nor do those that Connection names.
//
//   - A request is sent to a second upstream only where that is safe: nothing of the
//     answer has been passed on, what was read of the body can be sent again, and either
//     the method is idempotent (RFC 9110, section 9.2.2), or there is an Idempotency-Key,
//     or no connection could be made. Second attempts have a budget, which hedges
//     (Options.Hedge) take from as well.
//
//   - Bodies stream both ways. Of a request's at most Options.Replay bytes are kept, and
//     only where it may be sent again; of an answer's one buffer of 68 KiB.
//
//   - A client that goes away ends what the upstream does for it.
//
//   - A request that comes back, as its Via says, is answered 508.
//
//   - Upstreams change ([Pool.Set]) without a request lost: those that stay keep what is
//     known of them, and a request that is with one that goes is answered by it.
//
//   - gRPC passes: upstreams with TLS are spoken to by HTTP/2 where they can, those of the
//     scheme h2c without TLS.
//
// What is not: CONNECT, which is answered 501, unless tunnel.Connect stands before and names
// where it may lead; upgrades to other protocols than Options.Upgrades has.
//
// Do not use it with serve.Server.Reuse: a transport may read a request's header after
// the handler has returned.
//
// Place in a chain: it is the end. A timeout around it ends attempts as well.
package proxy
