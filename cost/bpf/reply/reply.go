// Package reply times, from outside, how long a running process takes to answer on
// the connections that it accepts.
//
// A wait begins when data arrives on a connection, in the kernel, whether or not the
// process has come to accept it or to read, and ends when the process sends on that
// connection: an answer in many parts counts once, up to the first. What the process
// sends unasked, and all on connections that it opened itself, does not count.
//
// Connections are those over TCP, with TLS or without, and Unix sockets of type
// stream, to where the process listens when watching begins. What is known of them is
// when data comes and goes, so that a wait is a response where one request waits at a
// time. Where requests share a connection (pipelined, HTTP/2), a wait ends with
// whichever answer comes next, and begins anew when data comes after the process has
// read what came before; so it does where a request comes in parts. What else a
// protocol has answered besides requests, such as a TLS handshake, is a wait, too.
//
// What a request waits for before it reaches the machine is not seen, nor are UDP,
// and so HTTP/3, connections that are MPTCP on both sides, connections that another
// process answers, and listeners that are opened later.
//
// Nothing is placed in the process: three programs run in the kernel whenever anybody
// sends or gets data, and see that most of it is none of theirs. If this process
// ends, in whatever way, they go.
//
// It needs Linux 6.6 on amd64 or arm64 with BTF, and root or CAP_BPF and CAP_PERFMON;
// elsewhere Start answers an error that wraps cost.ErrNotSupported.
package reply

import "time"

// Seen is what was seen since Start.
type Seen struct {
	Times   []Bucket // of waits that ended, the shortest first
	Waiting uint64   // connections on which data waits for an answer now
}

// Bucket counts waits, and says how long they were: from From to below Below, which
// is no more than a sixteenth above it, or nine minutes or more.
type Bucket struct {
	From, Below time.Duration
	Count       uint64
}
