//go:build race

package flow_test

// raceEnabled says that the race detector is on, which takes memory.
const raceEnabled = true
