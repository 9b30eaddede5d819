//go:build linux && amd64

package probe_test

import (
	"testing"

	"github.com/tarehq/tare/cost/bpf/probe"
)

func TestCalibrate(t *testing.T) {
	p, err := probe.Calibrate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", p)
}
