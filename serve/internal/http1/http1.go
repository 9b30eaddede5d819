// Package http1 reads HTTP/1 requests: heads, trailer sections and chunked
// bodies, as pure functions over bytes that somebody else received.
//
// The caller measures a head with [End], makes one string of it and hands that
// to [Head.Parse]; every string that comes out is a part of it. A chunked body
// goes through [Chunks.Decode] as it arrives, and what follows the last chunk
// through [End] and [Fields]. Nothing here blocks, keeps state of its own, or
// copies what it need not.
//
// Where RFC 9112 lets a server choose between repairing a message and refusing
// it, this package refuses: two readers that repair differently are what
// request smuggling is made of. [Lenient] has a switch for each refusal that a
// well-meant client may meet.
package http1

// Lenient goes back to the reading of net/http in places where strictness can
// hurt a client that means well. The zero value is strict everywhere. A server
// behind a proxy should leave it at that.
type Lenient struct {
	// BareLF lets a line of the head or the trailer section end with LF alone.
	BareLF bool
	// Fold lets a field value go on in the next line when that begins with
	// white space; each such break is read as one space.
	Fold bool
	// SameLengths lets Content-Length be repeated with the same value.
	SameLengths bool
	// LengthAndChunked lets Content-Length stand beside Transfer-Encoding,
	// which then rules; the connection is closed after the answer.
	LengthAndChunked bool
	// OldChunked ignores Transfer-Encoding in an HTTP/1.0 request; the
	// connection is closed after the answer.
	OldChunked bool
	// OtherHost lets Host differ from the authority of an absolute target,
	// which then rules.
	OtherHost bool
	// RawTarget lets bytes above 0x7F, and '#', stand in a target.
	RawTarget bool
	// UserInfo lets an absolute target carry a user name and a password.
	UserInfo bool
	// Connect passes CONNECT on to the handler, which is a proxy.
	Connect bool
	// ConnectPath does so too, and lets CONNECT name a path, as net/rpc does (whose
	// lines want BareLF, too), or a host without a port.
	ConnectPath bool
	// EmptyHost lets Host be empty where the target names none either.
	EmptyHost bool
	// Preface passes the preface of HTTP/2 on to the handler as a request, as
	// h2c.NewHandler wants it.
	Preface bool
}

// DefaultMaxFields bounds the fields of a head or a trailer section. Browsers
// send below 40, and proxies in front of a server seldom add 20. Apache has
// drawn the line at 100 for decades.
const DefaultMaxFields = 100

// Options are the limits and leniencies of [Head.Parse] and [Fields]. The zero
// value is strict.
type Options struct {
	// MaxFields bounds the field lines of one section; 0 means
	// [DefaultMaxFields], below 0 means no bound but the section's size.
	MaxFields int
	Lenient   Lenient
}

func (o *Options) maxFields() int {
	switch {
	case o.MaxFields == 0:
		return DefaultMaxFields
	case o.MaxFields < 0:
		return int(^uint(0) >> 1)
	}
	return o.MaxFields
}

// Error says why a request is refused and with which status. The errors of
// this package are fixed values: refusing allocates nothing.
type Error struct {
	Status int    // of the answer: 400, 414, 431, 501 or 505
	Reason string // for people; never a part of the request
}

func (e *Error) Error() string { return e.Reason }

// What Parse, Fields, URL and Decode return. The connection must be closed
// after each of them: where the next request begins can no longer be known.
var (
	errRequestLine = &Error{400, "malformed request line"}
	errMethod      = &Error{400, "invalid method"}
	errMethodLong  = &Error{501, "method too long"}
	errTarget      = &Error{400, "invalid request target"}
	errTargetForm  = &Error{400, "request target does not fit the method"}
	errTargetLong  = &Error{414, "request target too long"}
	errHeadLong    = &Error{431, "request head too long"}
	errUserInfo    = &Error{400, "user information in the request target"}
	errProto       = &Error{400, "malformed HTTP version"}
	errVersion     = &Error{505, "unsupported HTTP version; HTTP/1.1 and HTTP/1.0 are served"}
	errPreface     = &Error{505, "HTTP/2 is not served here; HTTP/1.1 and HTTP/1.0 are"}
	errConnect     = &Error{501, "CONNECT is not served"}

	errLineEnd   = &Error{400, "line not ended by CRLF"}
	errFold      = &Error{400, "white space at the start of a field line"}
	errFieldName = &Error{400, "invalid field name"}
	errValue     = &Error{400, "control character in a field value"}
	errFields    = &Error{431, "too many fields"}

	errNoHost    = &Error{400, "missing Host"}
	errHosts     = &Error{400, "more than one Host"}
	errHost      = &Error{400, "invalid Host"}
	errEmptyHost = &Error{400, "empty Host"}
	errOtherHost = &Error{400, "Host differs from the request target"}

	errLength     = &Error{400, "invalid Content-Length"}
	errLengths    = &Error{400, "more than one Content-Length"}
	errBoth       = &Error{400, "both Content-Length and Transfer-Encoding"}
	errOldChunked = &Error{400, "Transfer-Encoding in an HTTP/1.0 request"}
	errNoCoding   = &Error{400, "empty item in Transfer-Encoding"}
	errCoding     = &Error{400, "Transfer-Encoding does not end with chunked"}
	errUnknown    = &Error{501, "unsupported transfer coding"}

	errChunkLine  = &Error{400, "malformed chunk size"}
	errChunkSize  = &Error{400, "chunk size too large"}
	errChunkLong  = &Error{400, "chunk size line too long"}
	errExtensions = &Error{400, "too many chunk extensions"}
	errChunkEnd   = &Error{400, "chunk data not ended by CRLF"}
)
