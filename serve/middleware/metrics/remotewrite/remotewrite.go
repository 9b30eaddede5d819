// Package remotewrite sends the metrics of package metrics by Prometheus' remote write 1.0.
//
// It is for services that nobody can scrape: jobs that end soon, processes behind a
// firewall. Prometheus takes what it sends with --web.enable-remote-write-receiver, and so
// do Mimir, Thanos and VictoriaMetrics.
//
//	sender, err := remotewrite.New(remotewrite.Options{
//		URL:     "http://prometheus:9090/api/v1/write",
//		Metrics: m, // its Options.Service names the service
//		Labels:  map[string]string{"instance": hostname},
//	})
//	go sender.Run(ctx)
//
// If the receiver is away, requests go on as before: nothing waits in memory. Counters and
// histograms lose nothing by that, as the next time has what they have counted since they
// began. Gauges lose that reading. Failed counts the times.
//
// Limits: no exemplars, no native histograms, and no stale markers: for five minutes after the last
// sending Prometheus takes its numbers for those of now. The body has the form of snappy, which
// the protocol demands, but is not made smaller: 7 kB each time for Go's runtime, and 3 kB for
// each method, route and status.
package remotewrite

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/internal/safelog"
	"github.com/tarehq/tare/serve/middleware/metrics"
)

// Options of a sender. URL and Metrics must be set.
type Options struct {
	// URL is where metrics go, http or https.
	URL string
	// Metrics are what is sent.
	Metrics *metrics.Metrics
	// Labels are added to all samples that have none of the name, such as instance.
	Labels map[string]string
	// Header is added to each request, such as Authorization.
	Header http.Header
	// Every is the time from one sending to the next. 0: 15 seconds.
	Every time.Duration
	// Client sends. Nil: one that waits for an answer for ten seconds.
	Client *http.Client
	// Log records when sending begins to fail, and when it works again. Nil: nothing.
	Log *slog.Logger
}

const (
	defaultEvery = 15 * time.Second
	patience     = 10 * time.Second
	atEnd        = 5 * time.Second // for the last sending
	shown        = 256             // bytes of an answer in an error
)

// Sender sends metrics. It is safe for concurrent use.
type Sender struct {
	o      Options
	labels []metrics.Label
	shown  string // the URL without its password
	failed atomic.Uint64
}

// New returns a sender, or an error that says which option is wrong.
func New(o Options) (*Sender, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("remotewrite: Options.URL: %w", err)
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("remotewrite: Options.URL is %q: want such as http://prometheus:9090/api/v1/write", o.URL)
	case o.Metrics == nil:
		return nil, errors.New("remotewrite: Options.Metrics is not set: what is sent?")
	case o.Every < 0:
		return nil, fmt.Errorf("remotewrite: Options.Every is negative: %s", o.Every)
	}
	if o.Every == 0 {
		o.Every = defaultEvery
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: patience}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = safelog.New(o.Log)
	s := &Sender{o: o, shown: u.Redacted()}
	for name, value := range o.Labels {
		if !validLabel(name) {
			return nil, fmt.Errorf("remotewrite: Options.Labels has the name %q: want letters, digits and _, none of which is a digit in front or __", name)
		}
		s.labels = append(s.labels, metrics.Label{Name: name, Value: strings.ToValidUTF8(value, "\ufffd")})
	}
	return s, nil
}

func validLabel(name string) bool {
	for i, c := range []byte(name) {
		if !('a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || '0' <= c && c <= '9' && i > 0) {
			return false
		}
	}
	return name != "" && !strings.HasPrefix(name, "__")
}

// Failed returns how many sendings of Run failed.
func (s *Sender) Failed() uint64 { return s.failed.Load() }

// Run sends until ctx is done, and then once more, so that the last numbers arrive.
func (s *Sender) Run(ctx context.Context) {
	tick := time.NewTicker(s.o.Every)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), atEnd)
			defer cancel()
			s.note(s.sendOnce(last), failing)
			return
		case <-tick.C:
			if err := s.sendOnce(ctx); ctx.Err() == nil {
				failing = s.note(err, failing)
			}
		}
	}
}

// sendOnce is Send on Run's goroutine, where a panic would end the process: of a Value's Read,
// or of the client's transport.
func (s *Sender) sendOnce(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("sending metrics panicked: %v\n%s", v, debug.Stack())
		}
	}()
	return s.Send(ctx)
}

// note counts a failure, says what has changed, and returns whether sending fails.
func (s *Sender) note(err error, failing bool) bool {
	if err != nil {
		s.failed.Add(1)
	}
	switch {
	case err != nil && !failing:
		s.o.Log.Warn("sending metrics fails", "url", s.shown, "err", err)
	case err == nil && failing:
		s.o.Log.Info("sending metrics works again", "url", s.shown)
	}
	return err != nil
}

// Send sends the metrics as they are now. An answer other than 2xx is an error.
func (s *Sender) Send(ctx context.Context) error {
	body := snappy(encode(s.o.Metrics.Samples(), s.labels, time.Now().UnixMilli()))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.o.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("sending metrics: %w", err)
	}
	for name, values := range s.o.Header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Encoding", "snappy")
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "tare-serve")
	r.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	res, err := s.o.Client.Do(r)
	if err != nil {
		return fmt.Errorf("sending metrics: %w", err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, shown)) // for the message
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("sending metrics: %s answers %s: %q", s.shown, res.Status, strings.TrimSpace(string(text)))
	}
	return nil
}

// complete returns a sample's labels as the protocol wants them: its name among them,
// sorted, none empty, no name twice.
func complete(sample metrics.Sample, more []metrics.Label) []metrics.Label {
	all := append([]metrics.Label{{Name: "__name__", Value: sample.Name}}, sample.Labels...)
	all = append(all, more...)
	all = slices.DeleteFunc(all, func(l metrics.Label) bool { return l.Value == "" })
	slices.SortStableFunc(all, func(a, b metrics.Label) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b metrics.Label) bool { return a.Name == b.Name })
}
