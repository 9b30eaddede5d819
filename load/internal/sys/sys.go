// Package sys asks the operating system for what the standard library does not
// give: sockets without the runtime's poller, precise waits, and what the
// process has used.
package sys
