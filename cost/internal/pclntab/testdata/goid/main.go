// Command goid prints at which offsets of its goroutines' records their numbers lie:
// those at which each of many goroutines finds its own.
package main

import (
	"fmt"
	"log"
	"runtime"
)

// word returns the word at an offset of the runtime's record of this goroutine.
func word(offset uintptr) uint64

// size is less than that of a record, in words.
const size = 40

// found returns whether this goroutine's number lies at each of its words.
func found() (at [size]bool) {
	var header [64]byte
	var goid uint64
	if _, err := fmt.Sscanf(string(header[:runtime.Stack(header[:], false)]), "goroutine %d ", &goid); err != nil {
		log.Fatal(err)
	}
	for i := range at {
		at[i] = word(uintptr(8*i)) == goid
	}
	return at
}

func main() {
	log.SetFlags(0)
	all := found()
	for range 100 {
		one := make(chan [size]bool)
		go func() { one <- found() }()
		for i, ok := range <-one {
			all[i] = all[i] && ok
		}
	}
	for i, ok := range all {
		if ok {
			fmt.Println(8 * i)
		}
	}
}
