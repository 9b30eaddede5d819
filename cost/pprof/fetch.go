package pprof

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Service is a service that exposes net/http/pprof.
type Service struct {
	base     *url.URL
	answered atomic.Bool // whatever it was
}

// ErrEnded says that a service ended while it was asked: it had answered or taken a
// connection, and nothing listens there any more.
var ErrEnded = errors.New("the service has ended")

// patience is how long a service may take for an answer, beyond the time that it
// was asked to record.
const patience = 30 * time.Second

// Find takes a service's URL, with or without the path of its profiles, which is
// /debug/pprof/ unless the URL says another.
func Find(raw string) (*Service, error) {
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil && strings.Contains(raw, "@") {
		return nil, errors.New("the URL is malformed") // err may show a password that is in it, or a part of one
	}
	if err != nil {
		return nil, fmt.Errorf("the URL is malformed: %w", errors.Unwrap(err))
	}
	if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no http or https URL", u.Redacted())
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/debug/pprof/"
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	u.RawQuery, u.Fragment = "", ""
	return &Service{base: u}, nil
}

// String returns the URL of the profiles, without a password that is in it.
func (s *Service) String() string { return s.base.Redacted() }

// at is the URL of one of them, likewise.
func (s *Service) at(name string) string { return s.base.JoinPath(name).Redacted() }

// CPU profiles the service's CPU for d.
func (s *Service) CPU(ctx context.Context, d time.Duration) (*Profile, error) {
	return s.fetch(ctx, "profile", d)
}

// Allocs profiles what the service allocates within d.
func (s *Service) Allocs(ctx context.Context, d time.Duration) (*Profile, error) {
	return s.fetch(ctx, "allocs", d)
}

// Contention profiles who held locks that others waited for within d. It is
// empty unless the service has set runtime.SetMutexProfileFraction.
func (s *Service) Contention(ctx context.Context, d time.Duration) (*Profile, error) {
	body, err := s.get(ctx, "mutex", d, mostBytes)
	if err != nil {
		return nil, err
	}
	p, err := s.as(body, Contention, "mutex")
	if err != nil {
		return nil, err
	}
	return s.timely(p, "mutex", d)
}

// Live profiles the heap that the last collection left.
func (s *Service) Live(ctx context.Context) (*Profile, error) {
	return s.now(ctx, "heap", Live)
}

// Allocated profiles all that the service allocated since it began. The service collects its
// garbage twice for it: the runtime publishes what was allocated with a later collection.
func (s *Service) Allocated(ctx context.Context) (*Profile, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	collect := url.Values{"gc": {"1"}}
	if _, err := s.ask(ctx, "heap", collect); err != nil {
		return nil, err
	}
	body, err := s.ask(ctx, "heap", collect)
	if err != nil {
		return nil, err
	}
	return s.as(body, Allocs, "heap")
}

// Goroutines profiles where the goroutines are.
func (s *Service) Goroutines(ctx context.Context) (*Profile, error) {
	return s.now(ctx, "goroutine", Goroutines)
}

// Leaked profiles the goroutines that wait for what nothing can do any more. Go
// 1.27 has it, 1.26 by GOEXPERIMENT=goroutineleakprofile; elsewhere the error is a
// Refusal with code 404. The service collects its garbage for it.
func (s *Service) Leaked(ctx context.Context) (*Profile, error) {
	return s.now(ctx, "goroutineleak", Leaks)
}

// now fetches a profile of how things stand.
func (s *Service) now(ctx context.Context, name string, kind Kind) (*Profile, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := s.ask(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	return s.as(body, kind, name)
}

func (s *Service) as(body []byte, kind Kind, name string) (*Profile, error) {
	p, err := readKind(bytes.NewReader(body), kind)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.at(name), err)
	}
	return p, nil
}

// Trace records an execution trace of the service for d, in runtime/trace's form.
func (s *Service) Trace(ctx context.Context, d time.Duration) ([]byte, error) {
	return s.get(ctx, "trace", d, heldTrace)
}

// TraceTo is Trace for what is too long to be held in memory: it writes the trace to
// w as it comes. It gives up with ErrTooLarge after 1 GiB.
func (s *Service) TraceTo(ctx context.Context, d time.Duration, w io.Writer) error {
	return s.traceTo(ctx, d, w, mostTrace)
}

func (s *Service) traceTo(ctx context.Context, d time.Duration, w io.Writer, most int64) error {
	d = whole(d)
	ctx, cancel := context.WithTimeout(ctx, d+patience)
	defer cancel()
	body, err := s.open(ctx, "trace", over(d))
	if err != nil {
		return err
	}
	defer body.Close()
	if err := copyWithin(w, body, most); err != nil {
		return fmt.Errorf("reading %s: %w", s.at("trace"), s.explainBreak(err))
	}
	return nil
}

func (s *Service) fetch(ctx context.Context, name string, d time.Duration) (*Profile, error) {
	body, err := s.get(ctx, name, d, mostBytes)
	if err != nil {
		return nil, err
	}
	p, err := Read(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.at(name), err)
	}
	return s.timely(p, name, d)
}

// timely refuses a profile that is not of the time that was asked for.
func (s *Service) timely(p *Profile, name string, d time.Duration) (*Profile, error) {
	if err := p.checkDuration(whole(d)); err != nil {
		return nil, fmt.Errorf("%s: %w", s.at(name), err)
	}
	return p, nil
}

// whole is a time as a service counts it: in whole seconds.
func whole(d time.Duration) time.Duration { return max(time.Second, d.Round(time.Second)) }

func over(d time.Duration) url.Values {
	return url.Values{"seconds": {strconv.Itoa(int(d / time.Second))}}
}

// get asks for a record over d, of most bytes at most.
func (s *Service) get(ctx context.Context, name string, d time.Duration, most int64) ([]byte, error) {
	d = whole(d)
	ctx, cancel := context.WithTimeout(ctx, d+patience)
	defer cancel()
	return s.askWithin(ctx, name, over(d), most)
}

func (s *Service) ask(ctx context.Context, name string, query url.Values) ([]byte, error) {
	return s.askWithin(ctx, name, query, mostBytes)
}

func (s *Service) askWithin(ctx context.Context, name string, query url.Values, most int64) ([]byte, error) {
	from, err := s.open(ctx, name, query)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	body, err := readWithin(from, most)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.at(name), s.explainBreak(err))
	}
	return body, nil
}

// open asks for a record, whose bytes the caller reads and closes.
func (s *Service) open(ctx context.Context, name string, query url.Values) (io.ReadCloser, error) {
	u := s.base.JoinPath(name)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, s.explainBreak(err)
	}
	s.answered.Store(true)
	if res.StatusCode == http.StatusOK {
		return res.Body, nil
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.at(name), err)
	}
	return nil, &Refusal{Code: res.StatusCode, text: fmt.Sprintf("%s answered %s: %s", u.Redacted(), res.Status, firstLine(text))}
}

// explainBreak adds ErrEnded to why a connection broke, or was refused, if the service has
// ended. It looks for a tenth of a second, since connections may be closed before the port is.
func (s *Service) explainBreak(err error) error {
	refused := errors.Is(err, syscall.ECONNREFUSED)
	broke := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
	if !broke && !(refused && s.answered.Load()) {
		return err
	}
	address := s.base.Host
	if s.base.Port() == "" {
		address = net.JoinHostPort(s.base.Hostname(), s.base.Scheme) // a service's name in the list of ports
	}
	for range 5 {
		if refused {
			return fmt.Errorf("%w: %w", ErrEnded, err)
		}
		time.Sleep(20 * time.Millisecond)
		c, dialing := net.DialTimeout("tcp", address, time.Second)
		if dialing == nil {
			c.Close()
		}
		refused = errors.Is(dialing, syscall.ECONNREFUSED)
	}
	return err
}

// Refusal is a service's answer other than 200, as an error.
type Refusal struct {
	Code int // such as 404

	text string
}

func (r *Refusal) Error() string { return r.text }

// firstLine returns the beginning of an error's text, fit to print.
func firstLine(b []byte) string {
	line, _, _ := strings.Cut(string(b[:min(len(b), 200)]), "\n")
	return strconv.QuoteToGraphic(strings.TrimSpace(line))
}
