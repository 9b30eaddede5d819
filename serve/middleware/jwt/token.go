package jwt

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tarehq/tare/serve/internal/sys"
)

// Token is a verified token. Requests that bring the same one share it: do not change it.
type Token struct {
	Issuer, Subject, ID string // claims iss, sub, jti; empty: not there
	Audience            []string
	// Expires, NotBefore and IssuedAt are zero if the token does not have them.
	Expires, NotBefore, IssuedAt time.Time

	Algorithm string
	KeyID     string // of the key that verified it

	payload string
}

// Claims decodes all claims into v, as [json.Unmarshal] does.
func (t *Token) Claims(v any) error { return json.Unmarshal([]byte(t.payload), v) }

// Claim returns one claim as JSON. It is nil if the token does not have it.
func (t *Token) Claim(name string) json.RawMessage {
	var found json.RawMessage
	eachMember(t.payload, func(key, value string) error {
		if key == name {
			found = json.RawMessage(value)
		}
		return nil
	})
	return found
}

// errToken is why a token is not accepted, in words for the client.
type errToken string

func (e errToken) Error() string { return string(e) }

// strict takes no padding, no line ends and no bits beyond the last byte (RFC 7515,
// section 2).
var strict = base64.RawURLEncoding.Strict()

func decode(part string) ([]byte, error) {
	if strings.ContainsAny(part, "\r\n") { // which the decoder skips
		return nil, errToken("the token is malformed")
	}
	b, err := strict.DecodeString(part)
	if err != nil {
		return nil, errToken("the token is malformed")
	}
	return b, nil
}

// header is what a token's first part says.
type header struct{ alg, kid string }

// parseHeader reads the first part. Extensions that must be understood are not (crit).
func parseHeader(part string) (header, error) {
	var h header
	b, err := decode(part)
	if err != nil {
		return h, err
	}
	typ := "JWT"
	err = parseObject(sys.String(b), func(name, value string) (err error) {
		switch name {
		case "alg":
			h.alg, err = text(value)
		case "kid":
			h.kid, err = text(value)
		case "typ":
			typ, err = text(value)
		case "crit", "b64", "zip", "enc":
			err = errToken("the token has an extension that is not understood")
		}
		return err
	})
	h.alg = algorithmOf(h.alg)
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	if err == nil && typ != "jwt" && typ != "at+jwt" {
		err = errToken("the token is of another type")
	}
	return h, err
}

// parseClaims reads the second part.
func parseClaims(part string) (*Token, error) {
	b, err := decode(part)
	if err != nil {
		return nil, err
	}
	t := &Token{payload: sys.String(b)} // nobody writes b again
	return t, parseObject(t.payload, func(name, value string) (err error) {
		switch name {
		case "iss":
			t.Issuer, err = text(value)
		case "sub":
			t.Subject, err = text(value)
		case "jti":
			t.ID, err = text(value)
		case "aud":
			t.Audience, err = texts(value)
		case "exp":
			t.Expires, err = date(value)
		case "nbf":
			t.NotBefore, err = date(value)
		case "iat":
			t.IssuedAt, err = date(value)
		}
		return err
	})
}

// known are the members that must not be there twice.
var known = []string{"alg", "kid", "typ", "iss", "sub", "jti", "aud", "exp", "nbf", "iat"}

// parseObject calls f with the members of a JSON object in UTF-8 (RFC 7519, section 7.2).
func parseObject(s string, f func(name, value string) error) error {
	if !utf8.ValidString(s) || !json.Valid(sys.Bytes(s)) || !strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{") {
		return errToken("the token is malformed")
	}
	var seen uint
	return eachMember(s, func(name, value string) error {
		for i, k := range known {
			if name == k {
				if seen&(1<<i) != 0 {
					return errToken("the token has a member twice")
				}
				seen |= 1 << i
			}
		}
		return f(name, value)
	})
}

// eachMember goes through the members of an object that is valid JSON.
func eachMember(s string, f func(name, value string) error) error {
	const space = " \t\r\n"
	s = strings.TrimLeft(s, space)[1:]
	for {
		s = strings.TrimLeft(s, space+",")
		if s[0] == '}' {
			return nil
		}
		n := valueLen(s)
		name, err := text(s[:n])
		if err != nil {
			return err
		}
		s = strings.TrimLeft(s[n:], space+":")
		n = valueLen(s)
		if err := f(name, s[:n]); err != nil {
			return err
		}
		s = s[n:]
	}
}

// valueLen returns the length of the JSON value that s begins with.
func valueLen(s string) int {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
			continue
		case c == '"':
			quoted = !quoted
		case quoted:
			continue
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case strings.IndexByte(" \t\r\n,:", c) >= 0 || depth > 0:
			continue
		default: // a number or a word
			return i + wordLen(s[i:])
		}
		if depth == 0 && !quoted {
			return i + 1
		}
	}
	return len(s)
}

func wordLen(s string) int {
	if n := strings.IndexAny(s, " \t\r\n,}]"); n >= 0 {
		return n
	}
	return len(s)
}

// text reads a JSON string.
func text(value string) (string, error) {
	if value[0] != '"' {
		return "", errToken("the token has a member of the wrong type")
	}
	if strings.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1], nil
	}
	var s string
	err := json.Unmarshal([]byte(value), &s)
	return s, err
}

// texts reads a JSON string or an array of strings.
func texts(value string) ([]string, error) {
	if value[0] != '[' {
		one, err := text(value)
		return []string{one}, err
	}
	all := make([]string, 0, 1+strings.Count(value, ","))
	for rest := value[1:]; ; {
		rest = strings.TrimLeft(rest, " \t\r\n,")
		if rest[0] == ']' {
			return all, nil
		}
		n := valueLen(rest)
		one, err := text(rest[:n])
		if err != nil {
			return nil, err
		}
		all = append(all, one)
		rest = rest[n:]
	}
}

// lastDate is the end of the year 9999 (RFC 3339).
const lastDate = 253402300799

// date reads a number of seconds since 1970, which may have a fraction.
func date(value string) (time.Time, error) {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || v < 0 || v > lastDate {
		return time.Time{}, errToken("the token has a date that is none")
	}
	whole, fraction := math.Modf(v)
	return time.Unix(int64(whole), int64(fraction*1e9)), nil
}

// check holds the claims to what is asked.
func (o *Options) check(t *Token, now time.Time) error {
	switch {
	case t.Expires.IsZero() && !o.Forever:
		return errToken("the token has no end")
	case !t.Expires.IsZero() && !now.Before(t.Expires.Add(o.Leeway)):
		return errToken("the token has expired")
	case now.Before(t.NotBefore.Add(-o.Leeway)):
		return errToken("the token is not valid yet")
	case o.Issuer != "" && t.Issuer != o.Issuer:
		return errToken("the token is of another issuer")
	}
	if len(o.Audience) == 0 {
		return nil
	}
	for _, a := range t.Audience {
		for _, mine := range o.Audience {
			if a == mine {
				return nil
			}
		}
	}
	return errToken("the token is for another audience")
}

// errUnavailable is that keys cannot be had now.
var errUnavailable = errors.New("jwt: keys cannot be had")

func unavailable(err error) error { return errors.Join(errUnavailable, err) }
