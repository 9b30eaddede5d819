// Package basicauth admits requests with a user's name and password (RFC 7617).
//
// Passwords are kept as slow hashes. One that was right is remembered by a fast hash with a
// secret seed, one a user, in memory alone. So only the first request of a user and each
// wrong guess take a slow hash. Options.AtOnce bounds how many run at a time: more guesses
// wait up to Options.Wait and then get 503, whatever the attacker's rate. Names that do
// not exist take as long as those that do, if all hashes take the same time, and comparisons take
// the same time whatever differs.
//
// The price is that a flood of guesses can keep out users who have not come before: put
// ratelimit in front. Passwords cross the network readable, so serve by TLS.
//
// Place: behind recovery, requestid, accesslog, cors and limits; before a cache.
//
// Cost: of a password that is remembered a SHA-256; it allocates nothing in a chain on
// package serve. BenchmarkRequest has it, and BenchmarkHash what a guess takes.
package basicauth

import (
	"bytes"
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/sys"
)

// Options of the middleware. Users must be set.
type Options struct {
	// Users are names, each with what [Hash] made of the password.
	Users map[string]string
	// Compare reports whether a hash is that of the password. Nil: those of [Hash]. With
	// golang.org/x/crypto/bcrypt it reads the hashes of htpasswd.
	Compare func(hash, password string) bool
	// Realm is what browsers name when they ask. Empty: restricted.
	Realm string
	// AtOnce is how many passwords are hashed at a time. 0: half as many as Go uses
	// processors, at least one.
	AtOnce int
	// Wait is for how long a request waits for its turn. 0: a second.
	Wait time.Duration
}

// Verifier is the middleware with its users. It is safe for concurrent use.
type Verifier struct {
	o         Options
	challenge []string
	seed      [sha256.Size]byte
	turns     chan struct{} // one in it for each hash being made
	users     atomic.Pointer[map[string]*user]
	refused   atomic.Uint64
}

// user is one that exists, or stands for all that do not.
type user struct {
	name, hash string
	known      atomic.Pointer[[sha256.Size]byte] // of the password, once it was right
}

// longest is how long encoded credentials may be.
const longest = 1024

// New returns a verifier, or an error that says which option is wrong.
func New(o Options) (*Verifier, error) {
	if o.Realm == "" {
		o.Realm = "restricted"
	}
	for _, c := range []byte(o.Realm) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return nil, fmt.Errorf("basicauth: Options.Realm is %q; only printable ASCII without quotes and backslashes can be sent", o.Realm)
		}
	}
	if o.AtOnce < 0 || o.Wait < 0 {
		return nil, errors.New("basicauth: Options.AtOnce or Options.Wait is negative")
	}
	if o.AtOnce == 0 {
		o.AtOnce = max(1, runtime.GOMAXPROCS(0)/2)
	}
	if o.Wait == 0 {
		o.Wait = time.Second
	}
	v := &Verifier{o: o, challenge: []string{`Basic realm="` + o.Realm + `", charset="UTF-8"`}, turns: make(chan struct{}, o.AtOnce)}
	_, _ = rand.Read(v.seed[:]) // never fails
	return v, v.SetUsers(o.Users)
}

// SetUsers replaces the users. Requests go on meanwhile, and passwords that were right are known of
// those whose hash stays. On an error those before stay.
func (v *Verifier) SetUsers(hashes map[string]string) error {
	var before map[string]*user
	if last := v.users.Load(); last != nil {
		before = *last
	}
	users := make(map[string]*user, len(hashes)+1)
	for name, hash := range hashes {
		if name == "" || strings.Contains(name, ":") {
			return fmt.Errorf("basicauth: the user %q: a name is not empty and has no colon", name)
		}
		if v.o.Compare == nil {
			if _, err := parse(hash); err != nil {
				return fmt.Errorf("basicauth: the user %q: %w", name, err)
			}
		}
		users[name] = &user{name: name, hash: hash}
		if u := before[name]; u != nil && u.hash == hash {
			users[name] = u
		}
		users[""] = &user{hash: hash} // any will do: who does not exist takes as long
	}
	if len(users) == 0 {
		return errors.New("basicauth: Options.Users is empty: who may pass?")
	}
	v.users.Store(&users)
	return nil
}

// Middleware lets pass to next who has a password. In a chain its layer is called
// basicauth, in the role auth.
func (v *Verifier) Middleware(next http.Handler) http.Handler { return &handler{v, next} }

// Refused returns how many requests were refused.
func (v *Verifier) Refused() uint64 { return v.refused.Load() }

// From returns the user whose request it is, or that of which the context derives from.
// Empty: no middleware of this package stands before the caller.
func From(ctx context.Context) string {
	u, ok := verified.From(ctx)
	if !ok {
		return ""
	}
	return u.name
}

var verified = chain.NewKey[*user]("user")

type handler struct {
	v    *Verifier
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "basicauth", Roles: []string{"auth"}, Rules: []chain.Rule{
		chain.Before("cache", "it would answer those whom basicauth refuses"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u, err := h.v.verify(r)
	switch {
	case err != nil:
		w.Header().Set("Retry-After", "1")
		h.v.refuse(w, http.StatusServiceUnavailable)
	case u == nil:
		w.Header()["Www-Authenticate"] = h.v.challenge[:1:1]
		h.v.refuse(w, http.StatusUnauthorized)
	default:
		h.next.ServeHTTP(w, verified.With(r, u))
	}
}

func (v *Verifier) refuse(w http.ResponseWriter, status int) {
	v.refused.Add(1)
	http.Error(w, http.StatusText(status), status)
}

// errBusy is that a password could not be hashed in time.
var errBusy = errors.New("too many passwords are being verified")

// verify returns the user whose password the request has; nil: there is none.
func (v *Verifier) verify(r *http.Request) (*user, error) {
	var room [sha256.Size + longest]byte // the seed, then name:password
	buf := append(room[:0], v.seed[:]...)
	buf, colon := appendCredentials(buf, r.Header["Authorization"])
	if colon < 0 {
		return nil, nil
	}
	users := *v.users.Load()
	u := users[sys.String(buf[sha256.Size:colon])]
	if u == nil {
		u = users[""]
	}
	sum := sha256.Sum256(buf)
	if known := u.known.Load(); known != nil && subtle.ConstantTimeCompare(known[:], sum[:]) == 1 {
		return u, nil
	}
	right, err := v.compare(r.Context(), u.hash, string(buf[colon+1:]))
	if !right || u.name == "" {
		return nil, err
	}
	kept := sum // alone on the heap, and only here
	u.known.Store(&kept)
	return u, nil
}

// appendCredentials appends name:password to buf, and returns where its colon is; below
// zero: the fields have none. Of several fields none counts.
func appendCredentials(buf []byte, fields []string) ([]byte, int) {
	const scheme = "Basic "
	if len(fields) != 1 || len(fields[0]) < len(scheme) || !strings.EqualFold(fields[0][:len(scheme)], scheme) {
		return buf, -1
	}
	encoded := strings.TrimLeft(fields[0][len(scheme):], " ")
	if len(encoded) > longest {
		return buf, -1
	}
	begin := len(buf)
	buf, err := base64.StdEncoding.Strict().AppendDecode(buf, sys.Bytes(encoded))
	if err != nil {
		return buf, -1
	}
	if i := bytes.IndexByte(buf[begin:], ':'); i > 0 {
		return buf, begin + i
	}
	return buf, -1
}

// compare makes a slow hash when it is its turn.
func (v *Verifier) compare(ctx context.Context, hash, password string) (bool, error) {
	timer := time.NewTimer(v.o.Wait)
	defer timer.Stop()
	select {
	case v.turns <- struct{}{}:
	case <-timer.C:
		return false, errBusy
	case <-ctx.Done():
		return false, errBusy
	}
	defer func() { <-v.turns }() // also if Compare panics
	if v.o.Compare != nil {
		return v.o.Compare(hash, password), nil
	}
	h, err := parse(hash)
	if err != nil {
		return false, nil // SetUsers has parsed it
	}
	return subtle.ConstantTimeCompare(h.of(password), h.key) == 1, nil
}

// hashed is a password's PBKDF2 with SHA-256 (RFC 8018).
type hashed struct {
	rounds    int
	salt, key []byte
}

const (
	format = "$pbkdf2-sha256$"
	// rounds is what OWASP's cheat sheet on storing passwords asks for since 2023.
	rounds = 600_000
	// mostRounds keeps a slip in a hash from taking a processor for minutes.
	mostRounds = 100_000_000
)

// Hash returns a hash of the password, with a salt of its own, as Options.Users has it.
func Hash(password string) string {
	h := hashed{rounds: rounds, salt: make([]byte, 16)}
	_, _ = rand.Read(h.salt)
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("%s%d$%s$%s", format, h.rounds, encode(h.salt), encode(h.of(password)))
}

func (h *hashed) of(password string) []byte {
	key, err := pbkdf2.Key(sha256.New, password, h.salt, h.rounds, sha256.Size)
	if err != nil {
		panic(err) // in FIPS mode of salts that are too short, which parse refuses
	}
	return key
}

func parse(text string) (hashed, error) {
	rest, ok := strings.CutPrefix(text, format)
	parts := strings.Split(rest, "$")
	if !ok || len(parts) != 3 {
		return hashed{}, errors.New("not a hash that basicauth.Hash made")
	}
	n, err := strconv.ParseUint(parts[0], 10, 31)
	salt, saltErr := base64.RawStdEncoding.DecodeString(parts[1])
	key, keyErr := base64.RawStdEncoding.DecodeString(parts[2])
	if err := errors.Join(err, saltErr, keyErr); err != nil {
		return hashed{}, fmt.Errorf("the hash is malformed: %w", err)
	}
	if n < 1000 || n > mostRounds || len(salt) < 16 || len(key) != sha256.Size {
		return hashed{}, fmt.Errorf("the hash has %d rounds, a salt of %d bytes and a key of %d", n, len(salt), len(key))
	}
	return hashed{int(n), salt, key}, nil
}
