// Package redirect finds where the targets of a load lead.
package redirect

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/internal/secret"
	"github.com/tarehq/tare/load"
)

// mostRedirects of one target are followed.
const mostRedirects = 10

// Follow asks once for each GET and HEAD target and puts where redirects lead in its
// place, so that the load measures the last answer alone.
func Follow(ctx context.Context, o *load.Options) error {
	dialer := net.Dialer{}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{}}
	if o.TLS != nil {
		transport.TLSClientConfig = o.TLS.Clone()
	}
	if o.Proxy != "" {
		u, err := url.Parse(load.AbsoluteURL(o.Proxy))
		if err != nil { // which would show a password
			return errors.New("the URL of the proxy is malformed")
		}
		transport.Proxy = http.ProxyURL(u)
	}
	if o.Unix != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", o.Unix)
		}
	}
	client := http.Client{Transport: transport, Timeout: cmp.Or(max(o.Timeout, 0), time.Minute)}
	for i := range o.Targets {
		t := &o.Targets[i]
		if t.Method != "" && t.Method != http.MethodGet && t.Method != http.MethodHead {
			continue
		}
		client.CheckRedirect = func(next *http.Request, via []*http.Request) error { return mayFollow(t, via, next.URL) }
		last, err := askLast(ctx, &client, t)
		if err != nil {
			return fmt.Errorf("following redirects of %s: %w", load.Shown(t.URL), err)
		}
		t.URL = last
	}
	return nil
}

// askLast asks for a target and returns the URL that its redirects lead to.
func askLast(ctx context.Context, client *http.Client, t *load.Target) (string, error) {
	first := load.AbsoluteURL(t.URL)
	req, err := http.NewRequestWithContext(ctx, cmp.Or(t.Method, http.MethodGet), first, nil)
	if err != nil {
		return "", err
	}
	for _, f := range t.Header {
		req.Header.Add(f.Name, f.Value)
		if strings.EqualFold(f.Name, "Host") {
			req.Host = f.Value
		}
	}
	resp, err := client.Do(req)
	if uerr, ok := errors.AsType[*url.Error](err); ok {
		err = uerr.Err // the caller names the URL
	}
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if _, err := io.CopyN(io.Discard, resp.Body, 1); err != nil && err != io.EOF {
		return "", err
	}
	if resp.Request.Response == nil { // it came of no redirect
		return first, nil // not as net/url writes it
	}
	return resp.Request.URL.String(), nil
}

// mayFollow refuses a redirect before it is asked for: one too many, and one that would give
// the target's Host or a secret to another host, or send it in the clear.
func mayFollow(t *load.Target, via []*http.Request, next *url.URL) error {
	if len(via) >= mostRedirects {
		return fmt.Errorf("stopped after %d redirects", mostRedirects)
	}
	first := via[0].URL
	if next.Host == first.Host && (next.Scheme == "https" || first.Scheme == "http") {
		return nil
	}
	own := slices.IndexFunc(t.Header, func(f load.Field) bool { return strings.EqualFold(f.Name, "Host") || secret.Is(f.Name) })
	if own < 0 {
		return nil
	}
	return fmt.Errorf("they lead to %s://%s, which would get the field %s: load that URL itself if it may", next.Scheme, next.Host, t.Header[own].Name)
}
