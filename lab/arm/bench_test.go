//go:build linux

package arm_test

import (
	"context"
	"os"
	"testing"

	"github.com/tarehq/tare/lab/arm"
)

// What reading an arm costs the instrument while the load runs.
func BenchmarkRead(b *testing.B) {
	a, err := arm.Start(b.Context(), arm.Program{Path: os.Args[0], Env: []string{roleVar + "=serves"}}, arm.StartOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Stop(context.Background())
	if _, err := a.Ready(b.Context(), func(ctx context.Context) error { _, err := get(ctx, a.URL()+"/ping"); return err }); err != nil {
		b.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"what=usage":   func() error { _, err := a.Usage(false); return err },
		"what=pss":     func() error { _, err := a.Usage(true); return err },
		"what=sockets": func() error { _, err := a.Sockets(); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
