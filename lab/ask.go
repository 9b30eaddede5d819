package lab

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// readyWithin bounds the time from fork to the first correct answer.
const readyWithin = 20 * time.Second

// answerWithin bounds one request before that, so that an arm which swallows one
// while it starts is asked again.
const answerWithin = readyWithin / 2

// answer is what is known of one answer.
type answer struct {
	status int
	header http.Header // nil: not known
	length int64
	sha256 string
	body   []byte // nil: not known
}

// check holds an answer against what the workload asks, with a message that
// shows both.
func check(v study.Verify, a answer) error {
	want := v.Status
	if want == 0 {
		want = http.StatusOK
	}
	if a.status != want {
		return fmt.Errorf("status %d, want %d", a.status, want)
	}
	if v.Length != nil && a.length != *v.Length {
		return fmt.Errorf("body of %s, want %d", verdict.Count(int(a.length), "byte"), *v.Length)
	}
	if v.SHA256 != "" && !strings.EqualFold(a.sha256, v.SHA256) {
		return fmt.Errorf("body of %s with SHA-256 %s, want %s", verdict.Count(int(a.length), "byte"), a.sha256, v.SHA256)
	}
	if a.body != nil && !bytes.Contains(a.body, []byte(v.Contains)) {
		return fmt.Errorf("body %.80q does not contain %q", a.body, v.Contains)
	}
	for name, value := range v.Header {
		if a.header != nil && !slices.Contains(a.header.Values(name), value) {
			return fmt.Errorf("header %s is %q, want %q", name, a.header.Values(name), value)
		}
	}
	return nil
}

// ask sends one request on a connection of its own and checks the answer.
func ask(ctx context.Context, base string, g study.Target) error {
	a, err := answerTo(ctx, base, g)
	if err != nil {
		return err
	}
	return check(g.Verify, a)
}

// answerTo sends one request on a connection of its own and returns the answer.
func answerTo(ctx context.Context, base string, g study.Target) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerWithin, fmt.Errorf("no whole answer within %v", answerWithin))
	defer cancel()
	req, err := request(ctx, base, g)
	if err != nil {
		return answer{}, err
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 1 << 20}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		return answer{}, cmp.Or(context.Cause(ctx), err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return answer{}, fmt.Errorf("reading the answer: %w", cmp.Or(context.Cause(ctx), err))
	}
	return newAnswer(res, body), nil
}

// request is the target's, as the load makes it.
func request(ctx context.Context, base string, g study.Target) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, cmp.Or(g.Method, http.MethodGet), base+g.Path, strings.NewReader(g.Body))
	if err != nil {
		return nil, err
	}
	for name, value := range g.Header {
		if strings.EqualFold(name, "Host") {
			req.Host = value // net/http sends no Host of the header's
		} else {
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

func newAnswer(res *http.Response, body []byte) answer {
	sum := sha256.Sum256(body)
	header := res.Header
	if len(res.TransferEncoding) > 0 { // net/http takes the field away, which the load sees
		header = header.Clone()
		header["Transfer-Encoding"] = res.TransferEncoding
	}
	return answer{
		status: res.StatusCode, header: header, body: body,
		length: int64(len(body)), sha256: hex.EncodeToString(sum[:]),
	}
}
