package http1

import (
	"net/http"
	"strings"
)

// CheckRequest refuses in a request of another protocol what [Head.Parse] refuses in a
// head: net/http's HTTP/2 passes on any target and any Host (RFC 9113, section 8.3.1).
// It lets extended CONNECT (RFC 8441) pass, which net/http does not serve by default.
func CheckRequest(r *http.Request, o *Options) *Error {
	lax, target, fields := &o.Lenient, r.RequestURI, 1 // with Host
	for _, values := range r.Header {
		fields += len(values)
	}
	if fields > o.maxFields() {
		return errFields
	}
	tunnel := r.Method == http.MethodConnect && r.Header[":protocol"] == nil
	switch {
	case target == "":
		return errTarget
	case tunnel && !lax.Connect && !lax.ConnectPath:
		return errConnect
	case tunnel && !validConnect(target, lax), !tunnel && !strings.HasPrefix(target, "/") && (target != "*" || r.Method != http.MethodOptions):
		return errTargetForm
	case control(target, 0) < len(target) || strings.IndexByte(target, ' ') >= 0 || !lax.RawTarget && !all(target, targetChar):
		return errTarget
	case r.Host == "" && !lax.EmptyHost:
		return errEmptyHost
	case !validHost(r.Host):
		return errHost
	}
	if host := r.Header["Host"]; len(host) > 0 && !lax.OtherHost && !strings.EqualFold(host[0], r.Host) {
		return errOtherHost
	}
	return nil
}
