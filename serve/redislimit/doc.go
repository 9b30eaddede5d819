// Package redislimit refuses requests of clients that ask too often, counted in Redis or
// Valkey by all processes of a service together.
//
// The law is [ratelimit.GCRA] or [ratelimit.Window], each by one script of one key: at most
// one round trip a request, pipelined with those of concurrent requests. Two are needed
// once after Redis has lost the script. A refused client costs no round trip until it may
// come again. Time is Redis's. Keys are SHA-256 sums, so that neither addresses nor tokens
// can be read in Redis.
//
// With Options.Batch a process takes so many requests of a key from Redis at once and
// gives them out by itself. Then at most one request in Batch costs a round trip while
// the client keeps to the limit. A client that does not costs one more for each process
// and batch. In any time t all processes together admit, for this key,
//
//	Burst + Rate·t ± Processes·Batch
//
// requests by GCRA. By a window they admit Processes·Batch more than it lets pass in memory
// in any time, or fewer. What was taken and not given out is void after the time in which it
// comes back.
//
// Redis away: a limit in memory takes over. Its rate and burst, or its limit, are those of
// Options.Law divided by Options.Processes. It counts all requests all the time, so that a
// client has no second burst when it takes over. Requests wait for Redis for
// Options.Timeout at most, with Batch for twice as long; then the limit in memory decides. After
// three failures in a row they do not wait, and one at a time tries, first after half a second,
// then less often, at least every 5 s. [Limiter.Counts] has how many requests were decided so. The
// limit starts without Redis, too.
//
// Redis frozen: the requests that wait then time out, and what they asked for may count
// when it goes on. Redis restarted without its data, or another one that took over: counts
// begin anew, so that a client may have one burst more. Its clock goes back: what was used stays
// used, and nobody waits for longer than the law has it.
//
// Place: as for package ratelimit. In a chain the layer is called ratelimit and has the
// role limit.
//
// Cost: a round trip where one is needed. Else a lock, and the key's allocations.
package redislimit
