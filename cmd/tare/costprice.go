package main

import (
	"fmt"
	"time"
)

// What recording takes of the CPU that a service uses, by itself and while it
// lasts, where that was tried (BenchmarkPrice, docs/cost.md).
const (
	priceOfProfile = "6 to 19 %"
	priceOfTrace   = "up to 12 %"
	priceOfBoth    = "up to 18 %"
)

// price says what profiling a service is expected to cost it.
func (c *costCmd) price() string {
	text := "expected to cost it " + priceOfProfile + " of the CPU it uses"
	if c.Waits {
		text += fmt.Sprintf(", then %s for %s", priceOfTrace, c.tracing())
	}
	return text
}

// tracing is for how long waits are recorded.
func (c *costCmd) tracing() time.Duration { return min(c.For, 5*time.Second) }
