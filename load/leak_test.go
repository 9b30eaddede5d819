package load_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails when a run leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
