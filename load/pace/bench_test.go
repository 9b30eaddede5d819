package pace_test

import (
	"testing"
	"time"

	"github.com/tarehq/tare/load/pace"
)

func BenchmarkNext(b *testing.B) {
	for _, v := range []struct {
		name string
		s    *pace.Schedule
	}{
		{"constant", pace.Constant(1e4)},
		{"poisson", pace.Poisson(1e4, 1)},
		{"ramp", pace.Ramp(0, 1e7, 1e5*time.Hour)},
	} {
		b.Run("kind="+v.name, func(b *testing.B) {
			b.ReportAllocs()
			c := v.s.Cursor(0, 1)
			for b.Loop() {
				c.Next()
			}
		})
	}
}
