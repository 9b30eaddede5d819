package pprof

import (
	"context"
	"io"
	"time"
)

// ReadMemory and ReadBirths read what a service answers as text.
func ReadMemory(text []byte) (*Memory, error) { return readMemory(text) }

func ReadBirths(text []byte) Births { return readBirths(text) }

// TraceTo is Service.TraceTo with another bound.
func TraceTo(ctx context.Context, s *Service, w io.Writer, most int64) error {
	return s.traceTo(ctx, time.Second, w, most)
}
