//go:build race

package verdict_test

// raceEnabled says that the race detector is on, which takes time.
const raceEnabled = true
