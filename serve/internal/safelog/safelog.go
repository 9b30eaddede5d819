// Package safelog has loggers that outlive a panic of their handler.
//
// Handlers are the user's. On a goroutine of ours their panic would end the process, and where
// another panic is being logged it would take that one's place.
package safelog

import (
	"context"
	"log/slog"
)

// New returns a logger with the handler of log. A record with which that panics is lost.
func New(log *slog.Logger) *slog.Logger { return slog.New(handler{log.Handler()}) }

type handler struct{ next slog.Handler }

func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	defer ignore()
	return h.next.Enabled(ctx, level)
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	defer ignore()
	return h.next.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler { return handler{h.next.WithAttrs(attrs)} }

func (h handler) WithGroup(name string) slog.Handler { return handler{h.next.WithGroup(name)} }

func ignore() { _ = recover() }
