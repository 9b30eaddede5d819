// Package rivals is empty: the directories below it hold other people's
// frameworks, one small main each, which are compared with the standard library
// and with one another.
//
// A rival is set up as its authors recommend for speed and otherwise left as it
// comes: release mode, no logs, no middleware, one process. All route the same
// tables and answer the same bytes, which a test checks. What a comparison of
// them shows is routing, handing over parameters, and writing a body made
// beforehand through the framework's own call for that:
//
//   - Frameworks on net/http run in the http.Server that the control runs in,
//     with its defaults. Those with an engine of their own run in that.
//   - Nothing is encoded: encoders differ more than frameworks, and any of them
//     goes with any framework.
//   - A path without a route gets 404 and the body of http.NotFound, by way of
//     what the framework offers for that where its own answer is another.
//
// The first line of a main names the framework's module, so that the same
// source can be built with another version of it.
package rivals
