package middleware_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/clientaddr"
	"github.com/tarehq/tare/serve/middleware/jwt"
	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/middleware/requestid"
	"github.com/tarehq/tare/serve/servetest"
)

// TestClients has 1,000 clients ask the whole stack, on package serve and on net/http. Some go
// away, some read slowly, and some answers are cut short by a panic. Each of the others is
// whole and its client's own, and log and metrics have each request once.
func TestClients(t *testing.T) {
	t.Run("serve", func(t *testing.T) {
		testClients(t, func(h http.Handler) (string, func()) {
			s := servetest.NewServer(h)
			return s.URL, s.Close
		})
	})
	t.Run("nethttp", func(t *testing.T) {
		testClients(t, func(h http.Handler) (string, func()) {
			s := httptest.NewServer(h)
			return s.URL, s.Close
		})
	})
}

const (
	clients = 1000
	pieces  = 1000 // of an answer
)

// piece is what client n's answer is made of.
func piece(id, addr, subject string) string { return id + " " + addr + " " + subject + "; " }

func testClients(t *testing.T, serving func(http.Handler) (url string, end func())) {
	var lines bytes.Buffer
	layers, log := stack(&lines)
	counts := must(metrics.New(metrics.Options{NoRuntime: true}))
	layers[4].Wrap = counts.Middleware
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := piece(requestid.From(r.Context()), clientaddr.From(r).String(), jwt.From(r.Context()).Subject)
		for i := range pieces {
			if i == 10 && r.URL.Path == "/cut" {
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, text)
		}
	})
	url, end := serving(chain.Must(new(chain.Chain).With(layers...).Then(app)))
	transport := &http.Transport{MaxConnsPerHost: 100, DisableCompression: true}
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() { ask(t, transport, url, n) })
	}
	all.Wait()
	transport.CloseIdleConnections()
	end()
	if err := log.Close(t.Context()); err != nil {
		t.Error(err)
	}
	checkLines(t, lines.String(), int(log.Lost()))
	checkCounts(t, counts)
}

func idOf(n int) string      { return fmt.Sprint("request-", n) }
func addrOf(n int) string    { return fmt.Sprintf("198.18.%d.%d", n/256, n%256) }
func subjectOf(n int) string { return fmt.Sprint("customer-", n) }

// ask asks as client n.
func ask(t *testing.T, transport http.RoundTripper, url string, n int) {
	cut := n%10 == 2
	if cut {
		url += "/cut"
	}
	r := must(http.NewRequestWithContext(t.Context(), "GET", url, nil))
	r.Header.Set("X-Request-Id", idOf(n))
	r.Header.Set("X-Forwarded-For", addrOf(n))
	r.Header.Set("Authorization", "Bearer "+tokenOf(subjectOf(n)))
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Errorf("client %d: %v", n, err)
		return
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("X-Request-Id"); got != idOf(n) || resp.StatusCode != http.StatusOK {
		t.Errorf("client %d: status %d for %q", n, resp.StatusCode, got)
	}
	switch n % 10 {
	case 0: // goes away
		_, _ = resp.Body.Read(make([]byte, 1))
		return
	case 1:
		time.Sleep(10 * time.Millisecond)
	}
	own := piece(idOf(n), addrOf(n), subjectOf(n))
	body, err := io.ReadAll(resp.Body)
	switch got := string(body); {
	case cut && (err == nil || got != strings.Repeat(own, 10)):
		t.Errorf("client %d: a cut answer of %d bytes, %v", n, len(got), err)
	case !cut && (err != nil || got != strings.Repeat(own, pieces)):
		t.Errorf("client %d: %d bytes, %v; begins with %.60q, want %q", n, len(got), err, got, own)
	}
}

// tokenOf returns a token that the stack accepts.
func tokenOf(subject string) string {
	part := base64.RawURLEncoding.EncodeToString
	signed := part([]byte(`{"alg":"HS256"}`)) + "." + part(fmt.Appendf(nil, `{"sub":%q,"exp":%d}`, subject, time.Now().Add(time.Hour).Unix()))
	mac := hmac.New(sha256.New, []byte("a secret of at least thirty-two bytes"))
	mac.Write([]byte(signed))
	return signed + "." + part(mac.Sum(nil))
}

// checkLines finds each request once in the log, as its client sent it, but those whose lines
// are counted as lost.
func checkLines(t *testing.T, text string, lost int) {
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		var got struct {
			ID, Client, Target string
			Status             int
			Bytes              int
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		n, err := strconv.Atoi(strings.TrimPrefix(got.ID, "request-"))
		if err != nil || seen[got.ID] || got.Client != addrOf(n) || got.Status != http.StatusOK || (got.Target == "/cut") != (n%10 == 2) {
			t.Errorf("the log has %q", line)
		}
		seen[got.ID] = true
		if whole := pieces * len(piece(idOf(n), addrOf(n), subjectOf(n))); n%10 > 2 && got.Bytes != whole {
			t.Errorf("the log has %d bytes for client %d, want %d", got.Bytes, n, whole)
		}
	}
	if len(seen)+lost != clients {
		t.Errorf("the log has %d requests of %d, and has lost %d", len(seen), clients, lost)
	}
}

var counted = regexp.MustCompile(`(?m)^http_server_request_duration_seconds_count\{.*\} (\d+)$`)

// checkCounts finds each request once in the metrics, and none in flight.
func checkCounts(t *testing.T, m *metrics.Metrics) {
	var page bytes.Buffer
	if _, err := m.WriteTo(&page); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, found := range counted.FindAllStringSubmatch(page.String(), -1) {
		total += must(strconv.Atoi(found[1]))
	}
	if total != clients || !strings.Contains(page.String(), "\nhttp_server_active_requests 0\n") {
		t.Errorf("the metrics have %d requests of %d:\n%s", total, clients, &page)
	}
}
