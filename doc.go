// Package tare weighs what each layer of a Go HTTP service costs.
//
// The tare is the weight of the packaging, taken off to get the net weight.
// The command is cmd/tare; the libraries below it are:
//
//   - stats: paired comparisons with exact intervals, looks and verdicts
//   - load: HTTP load, open or closed loop, free of coordinated omission
//   - cost: who in a service spends what, from profiles, traces and outside
//   - lab: studies, from declaration to report
//   - serve: an HTTP server in place of http.Server, with a router and chains
//
// This package holds no code: its test keeps the rules of the layout.
package tare
