package ratelimit

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Policy tells clients of a law by the fields RateLimit-Policy and RateLimit of
// draft-ietf-httpapi-ratelimit-headers-10. It is safe for concurrent use.
type Policy struct {
	law  law
	text []string
}

// NewPolicy returns the policy of a law, or an error that says what is wrong with it.
func NewPolicy(of Law) (Policy, error) {
	if of == nil {
		return Policy{}, errors.New("ratelimit: the law is not set: how many requests may a client make?")
	}
	law, err := of.prepare()
	if err != nil {
		return Policy{}, fmt.Errorf("ratelimit: %w", err)
	}
	n, per := law.quota()
	return Policy{law, []string{fmt.Sprintf(`"default";q=%d;w=%d`, n, seconds(per))}}, nil
}

// Announce sets the fields of an answer. They name the requests that could follow at once,
// and the seconds until all of the limit is there again. Of a request that was refused they
// name the seconds after which it will not be: Retry-After must not be earlier than that.
func (p Policy) Announce(header http.Header, res Result) {
	reset := res.Reset
	if !res.Allowed && res.Retry >= 0 {
		reset = res.Retry
	}
	header["Ratelimit-Policy"] = p.text[:1:1]
	text := append(make([]byte, 0, 48), `"default";r=`...)
	text = strconv.AppendInt(text, int64(res.Remaining), 10)
	text = append(text, ";t="...)
	header["Ratelimit"] = []string{string(strconv.AppendInt(text, seconds(reset), 10))}
}

// seconds rounds up: a client that comes back after them is not too early.
func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }
