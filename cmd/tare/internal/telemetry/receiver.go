package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tarehq/tare/load"
)

// Bounds.
const (
	maxReply = 64 << 10         // bytes that are read of an answer
	Patience = 10 * time.Second // how long an answer may take
)

// Receiver is a server that takes JSON, or what SetHeader says, by HTTP POST.
type Receiver struct {
	what   string
	url    *url.URL
	header http.Header
	client http.Client
}

// NewReceiver is that of a URL, to which what is sent, as errors name it. A URL without a
// path has the one given. Header fields come from an environment variable, written as
// OpenTelemetry's exporters want theirs, such as "api-key=secret,x=a%20b".
func NewReceiver(what, raw, path, variable string) (*Receiver, error) {
	u, err := url.Parse(load.AbsoluteURL(raw))
	switch {
	case err != nil: // which would show a password
		return nil, errors.New("the URL is malformed")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q is not supported: want http or https", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("the URL has no host")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = path
	}
	header, err := headers(variable)
	if err != nil {
		return nil, err
	}
	return &Receiver{
		what: what, url: u, header: header,
		client: http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}, Timeout: Patience,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would be a GET
		},
	}, nil
}

// headers reads header fields from an environment variable.
func headers(variable string) (http.Header, error) {
	h := http.Header{"User-Agent": {"tare"}}
	for entry := range strings.SplitSeq(os.Getenv(variable), ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		name, value, ok := strings.Cut(entry, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil {
			return nil, fmt.Errorf("%s is not name=value,…, the values percent-encoded", variable)
		}
		h.Set(strings.TrimSpace(name), value)
	}
	h.Set("Content-Type", "application/json")
	return h, nil
}

// SetHeader sets a header field that the protocol asks for, whatever the environment says.
// It may not be called once something is sent.
func (r *Receiver) SetHeader(name, value string) { r.header.Set(name, value) }

// Path is the URL's.
func (r *Receiver) Path() string { return r.url.Path }

// Post sends a body, and has the answer and the beginning of its text judged.
func (r *Receiver) Post(ctx context.Context, body []byte, judge func(*http.Response, []byte) error) error {
	if err := r.post(ctx, body, judge); err != nil {
		return fmt.Errorf("sending %s to %s: %w", r.what, load.Shown(r.url.String()), err)
	}
	return nil
}

func (r *Receiver) post(ctx context.Context, body []byte, judge func(*http.Response, []byte) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url.String(), bytes.NewReader(body))
	if err != nil { // which would show a password
		return errors.New("the URL is malformed")
	}
	req.Header = r.header.Clone()
	resp, err := r.client.Do(req)
	if uerr, ok := errors.AsType[*url.Error](err); ok {
		err = uerr.Err
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return judge(resp, text)
}

// Close closes its idle connections.
func (r *Receiver) Close() { r.client.CloseIdleConnections() }
