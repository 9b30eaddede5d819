package pprof

import "io"

// ReadGoroutines reads a goroutine profile, compressed or not.
func ReadGoroutines(r io.Reader) (*Profile, error) { return readKind(r, Goroutines) }
