// Package router finds the handler for a request by method, host and path.
//
// A [Router] takes the patterns of http.ServeMux and gives them the same meaning:
// [METHOD ][HOST]/PATH, with wildcards {name}, {name...} and {$}; GET serves HEAD;
// the most specific pattern wins, wherever it stands; patterns of which neither
// is more specific conflict, which is found out when they are added. It answers
// what a ServeMux answers to paths that want a slash or cleaning, and to methods
// that a path does not take. So a mux's table moves over as it is.
//
// In addition, a wildcard may be constrained: {id:int}, {id:uuid},
// {year:[0-9]{4}}. The constraint is int, uint, alpha, alnum, hex or uuid, or a
// regular expression (package regexp) that the whole value must match. A
// constrained wildcard is more specific than one that is not, and less than a
// literal. Two different constraints in the same place conflict if some value
// satisfies both, which is decided exactly.
//
// # Slashes and dots in values
//
// A path is split at its slashes before it is unescaped: /a%2Fb is one segment
// whose value is a/b, and no wildcard but {name...} ever spans two. Empty segments
// and the segments . and .. are cleaned away by a redirect before anything
// matches; their encoded forms, such as %2e%2e, are values as any others, so
// that a handler that makes file names of values must check them.
//
// # Cost
//
// A path without wildcards is found by one hash, any other by a radix tree: at a
// cost that grows with the path, hardly with the number of routes. Matching
// allocates nothing of its own; see Values below. A path that is percent-encoded
// or not clean, a redirect and status 405 take a slower way that allocates.
//
// # Values
//
// Request.PathValue returns the values, as with a ServeMux, also after the
// handler has returned. They lie in memory that the server set aside with the
// request, if it did so, or else in half a kilobyte shared by some fifteen requests,
// which stays as long as one of them does, and with it the paths of the others.
//
// # Differences to http.ServeMux
//
// Patterns with empty segments, such as /a//b, match nothing but a CONNECT request
// for just that path; a ServeMux takes the empty segment for a wildcard without a
// name.
//
// When not to use it: a service with a handful of routes gains nothing that it
// would notice over http.ServeMux.
package router
