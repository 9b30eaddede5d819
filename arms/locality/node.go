package main

import "math/rand/v2"

// node is one link: what it needs fills a line of the cache.
type node struct {
	next   *node
	weight uint64
	_      [6]uint64 // its settings, which this call does not need
}

// call does the node's work and hands on the result.
//
//go:noinline
func (n *node) call(sum uint64) uint64 { return sum + n.weight }

// link has nodes call one another in the order of places, the first one returned.
func link(memory []node, places []int) *node {
	for i, at := range places {
		n := &memory[at]
		n.weight = uint64(i) + 1
		if i+1 < len(places) {
			n.next = &memory[places[i+1]]
		}
	}
	return &memory[places[0]]
}

// sum is what n nodes add up to.
func sum(n int) uint64 { return uint64(n) * uint64(n+1) / 2 }

// inOrder are n places one after another.
func inOrder(n int) []int {
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	return places
}

// shuffled are n of the many places in an order that is random, and the same in
// every process.
func shuffled(n int) []int {
	return rand.New(rand.NewPCG(1, 2)).Perm(many)[:n]
}
