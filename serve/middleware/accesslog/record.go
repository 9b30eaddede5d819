package accesslog

import (
	"context"
	"fmt"
	"log/slog"
)

// report has the handler handle a record of the line, with the keys of [JSON] but that times are
// durations. It is called on the request's goroutine, whose answer the handler's panic must
// not touch.
func (l *Line) report(ctx context.Context, to slog.Handler) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("accesslog: Options.Slog panicked: %v", v)
		}
	}()
	level := slog.LevelInfo
	if l.Status >= 500 {
		level = slog.LevelError
	}
	if !to.Enabled(ctx, level) {
		return nil
	}
	r := slog.NewRecord(l.Time, level, "request", 0)
	known := func(key, value string) {
		if value != "" {
			r.AddAttrs(slog.String(key, value))
		}
	}
	known("id", l.ID)
	known("trace_id", l.Trace)
	if l.Client.IsValid() {
		known("client", l.Client.String())
	}
	known("user", l.User)
	known("method", l.Method)
	known("host", l.Host)
	known("target", l.Target)
	known("route", l.Route)
	known("proto", l.Proto)
	r.AddAttrs(slog.Int("status", l.Status), slog.Int64("bytes", l.Bytes), slog.Duration("duration", l.Took))
	known("referer", l.Referer)
	known("agent", l.Agent)
	if u := l.Upstream; u.Address != "" {
		r.AddAttrs(slog.String("upstream", u.Address), slog.Duration("upstream_duration", u.Took), slog.Int("attempts", u.Attempts))
	}
	if l.Panicked {
		r.AddAttrs(slog.Bool("panicked", true))
	}
	if l.Hijacked {
		r.AddAttrs(slog.Bool("hijacked", true))
	}
	return to.Handle(ctx, r)
}
