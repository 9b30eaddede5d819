//go:build race

package load_test

// raceEnabled says that the race detector is on: sync.Pool then drops some of
// what it is given.
const raceEnabled = true
