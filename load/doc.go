// Package load offers HTTP load to a server and measures its answers.
//
// A run asks for its targets in the closed loop, where each connection sends
// its next request when the answer has come, or in the open loop, where a
// schedule gives the intended starts and nothing the server does changes them.
// The response time counts from the intended start to the last byte, the
// service time from the actual start; the lag between the two starts is the
// generator's own health. Reporting service times as response times is
// coordinated omission, so the result holds both.
//
// # What is promised
//
// Every scheduled request ends in exactly one field of Counts: answered, by
// class of status, or refused, reset, timed out, cut short, malformed or
// dropped. Nothing is sent twice: a request on a kept connection that the
// server closes at the same moment counts as reset, where a browser would try
// again unseen. An answer counts when it is well-formed HTTP, whole, and within
// the limits; whether it is as the target asks is counted beside that.
//
// A request belongs to the warm-up or to the measured part by its intended
// start. After the end of the measured part no request is due any more. Those in
// flight are waited for up to the time-out, then counted as timed out; those that
// were due and wait for a connection may still begin until then, and are counted as
// dropped if they do not. Without a time-out that is 30 s, and where Options.Requests
// alone ends the run, until all have ended.
//
// HTTP/1.1 and HTTP/2 on Linux are driven by event loops on locked threads over epoll,
// with no goroutine and, without TLS, no allocation per request. Tunnels through a proxy,
// HTTP/3 and other systems use a goroutine for each connection or stream, which costs the
// generator more CPU time and the result nothing else.
//
// In the open loop of event loops over TCP an answer has come when the
// kernel has it, not when the generator, late perhaps, reads it: how late is
// Result.Unread, and in no response time. Elsewhere answers count from when they
// are read; so do those that end with their connection, and those of which
// segments came out of order: the kernel's time is the last segment's, not the
// last to come's.
//
// # When not to use it
//
// A generator on the server's own CPUs measures the competition for them: see
// Options.CPUs, and Result.Bound and Warnings. The package does not follow
// redirects, keep cookies or render pages.
package load
