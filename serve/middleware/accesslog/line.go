package accesslog

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/tarehq/tare/serve/internal/sys"
)

// Line is what is logged of a request. Its strings are those of the request: a [Format]
// escapes them and keeps none.
type Line struct {
	Time     time.Time // when the middleware got the request
	Took     time.Duration
	ID       string     // of package requestid; empty: none
	Trace    string     // of Options.Trace; empty: none
	Client   netip.Addr // of package clientaddr; invalid: none
	User     string     // of Options.User; empty: none
	Method   string
	Host     string
	Target   string // as it was sent, with the query if Options.Query is set
	Route    string // the pattern that a router matched; empty: none
	Proto    string
	Status   int // that the client got; 499: it left before; 101 if Hijacked
	Bytes    int64
	Referer  string // without its query unless Options.Query is set
	Agent    string
	Upstream Upstream // of Options.Upstream; an empty address: none
	Panicked bool     // the handler did; Status is then what package recovery answers, if nothing was sent
	Hijacked bool
}

// Upstream is the server that a proxy asked.
type Upstream struct {
	Address  string // of the one that was asked last
	Took     time.Duration
	Attempts int // how many times one was asked
}

// longest is how many bytes of each string a line keeps that is cut. Ten of them, each byte
// escaped as six, find room in the smallest buffer.
const longest = 1024

// cut makes the line's strings short.
func (l *Line) cut() {
	for _, s := range []*string{&l.ID, &l.Trace, &l.User, &l.Method, &l.Host, &l.Target, &l.Route, &l.Proto, &l.Referer, &l.Agent} {
		*s = (*s)[:min(len(*s), longest)]
	}
}

// Format appends a line, with its line end, to b and returns it. It is called by many
// goroutines at a time.
type Format func(b []byte, l *Line) []byte

// JSON writes an object a line. The keys duration_ms and upstream_ms have milliseconds; keys of
// what is not known are missing.
func JSON(b []byte, l *Line) []byte {
	b = append(b, `{"time":"`...)
	b = appendTime(b, l.Time)
	b = append(b, '"')
	b = appendKnown(b, `,"id":"`, l.ID)
	b = appendKnown(b, `,"trace_id":"`, l.Trace)
	if l.Client.IsValid() {
		b = append(b, `,"client":"`...)
		b = l.Client.AppendTo(b)
		b = append(b, '"')
	}
	b = appendKnown(b, `,"user":"`, l.User)
	b = appendKnown(b, `,"method":"`, l.Method)
	b = appendKnown(b, `,"host":"`, l.Host)
	b = appendKnown(b, `,"target":"`, l.Target)
	b = appendKnown(b, `,"route":"`, l.Route)
	b = appendKnown(b, `,"proto":"`, l.Proto)
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(l.Status), 10)
	b = append(b, `,"bytes":`...)
	b = strconv.AppendInt(b, l.Bytes, 10)
	b = append(b, `,"duration_ms":`...)
	b = appendMillis(b, l.Took)
	b = appendKnown(b, `,"referer":"`, l.Referer)
	b = appendKnown(b, `,"agent":"`, l.Agent)
	if u := l.Upstream; u.Address != "" {
		b = appendKnown(b, `,"upstream":"`, u.Address)
		b = append(b, `,"upstream_ms":`...)
		b = appendMillis(b, u.Took)
		b = append(b, `,"attempts":`...)
		b = strconv.AppendInt(b, int64(u.Attempts), 10)
	}
	if l.Panicked {
		b = append(b, `,"panicked":true`...)
	}
	if l.Hijacked {
		b = append(b, `,"hijacked":true`...)
	}
	return append(b, '}', '\n')
}

func appendKnown(b []byte, key, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, key...)
	b = appendJSON(b, value)
	return append(b, '"')
}

// appendMillis writes milliseconds with three decimals.
func appendMillis(b []byte, d time.Duration) []byte {
	us := max(d.Microseconds(), 0)
	b = strconv.AppendInt(b, us/1000, 10)
	us %= 1000
	return append(b, '.', byte('0'+us/100), byte('0'+us/10%10), byte('0'+us%10))
}

// plainJSON are the bytes that a JSON string has as they are.
var plainJSON = func() (set [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		set[c] = c != '"' && c != '\\'
	}
	return set
}()

// plainLength returns how many bytes of s a JSON string has as they are, up to the first that
// it has not.
//
// Note: it looks at eight at a time. One by one a whole line took 1.1 times as long
// (BenchmarkLine, medians of 160).
func plainLength(s string) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080 // in each byte
	b, n := sys.Bytes(s), 0
	for ; n+8 <= len(b); n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		quote, slash, del := w^ones*'"', w^ones*'\\', w^ones*0x7f // zero where the byte is that
		// Of bytes below 0x80, 1 less has its highest bit set in the first that is zero.
		if (w|(w-ones*' ')|(quote-ones)|(slash-ones)|(del-ones))&high != 0 {
			break
		}
	}
	for n < len(b) && plainJSON[b[n]] {
		n++
	}
	return n
}

// appendJSON escapes s as RFC 8259 asks and, beyond that, what terminals and browsers
// take for more than text: DEL, the controls of Latin 1, the line ends of Unicode and
// what changes the direction of writing. Bytes that are not UTF-8 become U+FFFD.
func appendJSON(b []byte, s string) []byte {
	for len(s) > 0 {
		n := plainLength(s)
		b = append(b, s[:n]...)
		if s = s[n:]; s == "" {
			break
		}
		c, size := utf8.DecodeRuneInString(s)
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c == utf8.RuneError && size == 1:
			b = append(b, `\ufffd`...)
		case c < 0xa0 || c == 0x61c || c == 0x2028 || c == 0x2029 || c >= 0x200e && c <= 0x200f || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069:
			b = append(b, '\\', 'u', hex[c>>12], hex[c>>8&15], hex[c>>4&15], hex[c&15])
		default:
			b = append(b, s[:size]...)
		}
		s = s[size:]
	}
	return b
}

const hex = "0123456789abcdef"

// Combined writes Apache's combined log format: client, user, time, request, status,
// bytes, referer, agent.
func Combined(b []byte, l *Line) []byte {
	if l.Client.IsValid() {
		b = l.Client.AppendTo(b)
	} else {
		b = append(b, '-')
	}
	b = append(b, " - "...)
	b = appendCombined(b, strings.ReplaceAll(l.User, " ", "_")) // not quoted: a space would end it
	b = append(b, " ["...)
	b = l.Time.AppendFormat(b, "02/Jan/2006:15:04:05 -0700")
	b = append(b, `] "`...)
	b = appendEscaped(b, l.Method)
	b = append(b, ' ')
	b = appendEscaped(b, l.Target)
	b = append(b, ' ')
	b = appendEscaped(b, l.Proto)
	b = append(b, `" `...)
	b = strconv.AppendInt(b, int64(l.Status), 10)
	b = append(b, ' ')
	if l.Bytes == 0 {
		b = append(b, '-')
	} else {
		b = strconv.AppendInt(b, l.Bytes, 10)
	}
	b = append(b, ` "`...)
	b = appendCombined(b, l.Referer)
	b = append(b, `" "`...)
	b = appendCombined(b, l.Agent)
	return append(b, '"', '\n')
}

// appendCombined is appendEscaped, but - for what is not known.
func appendCombined(b []byte, s string) []byte {
	if s == "" {
		return append(b, '-')
	}
	return appendEscaped(b, s)
}

// appendEscaped writes all that is not printable ASCII as \xhh, as Apache does.
func appendEscaped(b []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c >= 0x7f:
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return b
}

// appendTime writes RFC 3339 with microseconds. What the second is written as is kept
// for the next lines of the same one.
func appendTime(b []byte, t time.Time) []byte {
	second := t.Unix()
	w := written.Load()
	if w == nil || w.second != second || w.zone != t.Location() {
		w = &writtenSecond{second: second, zone: t.Location()}
		text := t.AppendFormat(w.text[:0], "2006-01-02T15:04:05")
		w.head = len(text)
		w.all = len(t.AppendFormat(text, "Z07:00"))
		written.Store(w)
	}
	us := t.Nanosecond() / 1000
	b = append(b, w.text[:w.head]...)
	b = append(b, '.', byte('0'+us/100000), byte('0'+us/10000%10), byte('0'+us/1000%10),
		byte('0'+us/100%10), byte('0'+us/10%10), byte('0'+us%10))
	return append(b, w.text[w.head:w.all]...)
}

// writtenSecond is a second as text: all of it up to the seconds, then the zone.
type writtenSecond struct {
	second    int64
	zone      *time.Location
	text      [40]byte
	head, all int
}

var written atomic.Pointer[writtenSecond]
