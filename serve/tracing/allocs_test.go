//go:build !race

package tracing_test

import (
	"testing"

	"github.com/tarehq/tare/serve/tracing"
)

// TestAllocs holds a request that is not traced to one allocation in 32.
func TestAllocs(t *testing.T) {
	if n := testing.AllocsPerRun(1000, served(tracing.Fixed{})); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}
