// Package config makes a proxy of a file: upstreams, routes, where to listen.
//
// [Parse] reads a file of JSON and says everything that is wrong in it, each with the path
// of the value ([Problems]); what reads another syntax translates these paths. A [Site]
// takes one file after the other while it serves.
//
// docs/proxy.md describes the keys.
package config
