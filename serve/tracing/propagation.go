package tracing

import (
	"net/http"
	"net/netip"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// parent returns the span of the service that sent the request, if that is trusted and
// named one. One without identifiers only says whether to trace.
func (h *handler) parent(r *http.Request) (trace.SpanContext, bool) {
	if len(h.o.Trusted) == 0 || !trusted(r.RemoteAddr, h.o.Trusted) {
		return trace.SpanContext{}, false
	}
	if lines := r.Header["Traceparent"]; len(lines) > 0 {
		if len(lines) > 1 {
			return trace.SpanContext{}, false
		}
		c, ok := parseTraceparent(lines[0])
		if state := r.Header["Tracestate"]; ok && len(state) > 0 {
			if s, err := trace.ParseTraceState(strings.Join(state, ",")); err == nil {
				c.TraceState = s
			}
		}
		return finish(c, ok)
	}
	if !h.o.B3 {
		return trace.SpanContext{}, false
	}
	single := r.Header["B3"]
	switch {
	case len(single) == 1 && strings.Contains(single[0], "-"):
		return finish(parseB3(single[0]))
	case len(single) == 1:
		return decision(single[0])
	case len(r.Header["X-B3-Traceid"]) > 0:
		return finish(readB3(r.Header))
	}
	return decision(sampledWord(r.Header))
}

// decision returns no span, and B3's word for whether one is to be made: where a service has not
// begun a trace, that is all that it sends.
func decision(word string) (trace.SpanContext, bool) {
	var c trace.SpanContextConfig
	ok := word != "" && setSampled(&c, word)
	return trace.NewSpanContext(c), ok
}

func finish(c trace.SpanContextConfig, ok bool) (trace.SpanContext, bool) {
	c.Remote = true
	if s := trace.NewSpanContext(c); ok && s.IsValid() {
		return s, true
	}
	return trace.SpanContext{}, false
}

// trusted reports whether the connection's address is in one of the prefixes.
func trusted(remote string, prefixes []netip.Prefix) bool {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	addr := at.Addr().Unmap().WithZone("")
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// parseTraceparent reads the field of W3C Trace Context, section 3.2, of this and of later
// versions.
func parseTraceparent(s string) (c trace.SpanContextConfig, ok bool) {
	const length = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if len(s) < length || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return c, false
	}
	var version, flags [1]byte
	if !decode(version[:], s[:2]) || version[0] == 0xff || version[0] == 0 && len(s) != length || len(s) > length && s[length] != '-' {
		return c, false
	}
	if !decode(c.TraceID[:], s[3:35]) || !decode(c.SpanID[:], s[36:52]) || !decode(flags[:], s[53:55]) {
		return c, false
	}
	c.TraceFlags = trace.TraceFlags(flags[0]) & (trace.FlagsSampled | trace.FlagsRandom)
	return c, true
}

// parseB3 reads the single field of B3: trace, span, and perhaps whether it is sampled and
// the parent.
func parseB3(s string) (c trace.SpanContextConfig, ok bool) {
	id, rest, ok := strings.Cut(s, "-")
	if !ok || !decodeID(&c, id) {
		return c, false
	}
	span, rest, more := strings.Cut(rest, "-")
	if !decode(c.SpanID[:], span) {
		return c, false
	}
	if !more {
		return c, true
	}
	sampled, _, _ := strings.Cut(rest, "-")
	ok = setSampled(&c, sampled)
	return c, ok
}

// readB3 reads the several fields of B3.
func readB3(header http.Header) (c trace.SpanContextConfig, ok bool) {
	if !decodeID(&c, header.Get("X-B3-Traceid")) || !decode(c.SpanID[:], header.Get("X-B3-Spanid")) {
		return c, false
	}
	ok = setSampled(&c, sampledWord(header))
	return c, ok
}

// sampledWord returns what the several fields of B3 say of sampling, as the single one has it.
func sampledWord(header http.Header) string {
	if header.Get("X-B3-Flags") == "1" {
		return "d"
	}
	return header.Get("X-B3-Sampled")
}

// decodeID reads a trace's identifier of 64 or 128 bits.
func decodeID(c *trace.SpanContextConfig, id string) bool {
	if len(id) == 16 {
		return decode(c.TraceID[8:], id)
	}
	return decode(c.TraceID[:], id)
}

// setSampled takes B3's word for whether a trace is sampled; d is for debugging.
func setSampled(c *trace.SpanContextConfig, word string) bool {
	switch word {
	case "1", "true", "d":
		c.TraceFlags = trace.FlagsSampled
	case "0", "false", "":
	default:
		return false
	}
	return true
}

// decode reads just as many bytes from lower-case hexadecimal digits.
func decode(to []byte, s string) bool {
	if len(s) != 2*len(to) {
		return false
	}
	for i := range to {
		high, low := digit(s[2*i]), digit(s[2*i+1])
		if high > 15 || low > 15 {
			return false
		}
		to[i] = high<<4 | low
	}
	return true
}

// digit returns a hexadecimal digit's value, more than 15 if it is none.
func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}
