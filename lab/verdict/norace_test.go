//go:build !race

package verdict_test

const raceEnabled = false
