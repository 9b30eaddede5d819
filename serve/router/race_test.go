//go:build race

package router_test

// raced tells that pools drop at random what they are given.
const raced = true
