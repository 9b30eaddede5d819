package http1

import "net/http"

// The names that bear on framing and routing come first: their numbers are
// what Parse switches on. nameID 0 is every name that is not listed.
type nameID uint8

const (
	otherName nameID = iota
	nameHost
	nameContentLength
	nameTransferEncoding
	nameConnection
	nameExpect
	nameTrailer
	nameCacheControl
	namePragma
	firstOther // of the listed names that Parse need not know

	firstPlain = nameCacheControl // from here on nothing but the map is told
)

// knownNames are the names that clients and proxies send most, at most 64 with
// the first, so that one word remembers which were seen. They cost neither an
// allocation nor a look at each of their characters.
var knownNames = [...]string{
	nameHost:             "Host",
	nameContentLength:    "Content-Length",
	nameTransferEncoding: "Transfer-Encoding",
	nameConnection:       "Connection",
	nameExpect:           "Expect",
	nameTrailer:          "Trailer",
	nameCacheControl:     "Cache-Control",
	namePragma:           "Pragma",
	firstOther:           "Accept",
	"Accept-Charset", "Accept-Encoding", "Accept-Language",
	"Access-Control-Request-Headers", "Access-Control-Request-Method",
	"Authorization", "Cdn-Loop", "Cf-Connecting-Ip", "Cf-Ray",
	"Content-Disposition", "Content-Encoding", "Content-Type",
	"Cookie", "Date", "Dnt", "Forwarded", "From", "If-Match",
	"If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since",
	"Keep-Alive", "Origin", "Priority", "Proxy-Connection", "Range",
	"Referer", "Sec-Ch-Ua", "Sec-Ch-Ua-Mobile", "Sec-Ch-Ua-Platform",
	"Sec-Fetch-Dest", "Sec-Fetch-Mode", "Sec-Fetch-Site", "Sec-Fetch-User",
	"Sec-Gpc", "Sec-Websocket-Extensions", "Sec-Websocket-Key",
	"Sec-Websocket-Version", "Te", "Traceparent", "Tracestate", "Upgrade",
	"Upgrade-Insecure-Requests", "User-Agent", "Via", "X-Amzn-Trace-Id",
	"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port",
	"X-Forwarded-Proto", "X-Real-Ip", "X-Request-Id", "X-Requested-With",
}

// A knownName is one slot of the table: the name in both usual spellings.
type knownName struct {
	canonical, lower string
	id               nameID
}

var nameTable = buildNames()

func buildNames() (t [256]knownName) {
	for id, name := range knownNames {
		if name == "" {
			continue
		}
		t[slot(name)] = knownName{name, lowered(name), nameID(id)}
	}
	return t
}

// slot places a name, without regard to case, by its length and three of its
// characters. The factors were found by trial: no two known names share a slot.
func slot(s string) uint8 {
	n := len(s)
	return uint8(n)*162 + (s[0]|0x20)*40 + (s[max(n-4, 0)]|0x20)*159 + (s[n-1]|0x20)*246
}

// lookup returns the canonical form of a field name and its number. The name
// is "" if s is no token.
func lookup(s string) (string, nameID) {
	if s == "" {
		return "", otherName
	}
	k := &nameTable[slot(s)]
	if s == k.canonical || s == k.lower || fold(s, k.lower) {
		return k.canonical, k.id
	}
	if !ValidFieldName(s) {
		return "", otherName
	}
	return http.CanonicalHeaderKey(s), otherName
}

func lowered(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
