package jwt

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// RemoteOptions say where keys are fetched. URL must be set.
type RemoteOptions struct {
	// URL is of a JSON Web Key Set (RFC 7517), by https, or by http from loopback.
	URL string
	// Client fetches it. Nil: one that gives up after 5 s and follows no redirect.
	Client *http.Client
	// Refresh is the age at which keys are fetched anew, behind a request that needs
	// them: keys that were taken away are then accepted no more. 0: 5 minutes.
	Refresh time.Duration
	// Stale is for how long keys are used that cannot be fetched anew. 0: a day.
	Stale time.Duration
}

// Bounds of fetching.
const (
	defaultRefresh = 5 * time.Minute
	defaultStale   = 24 * time.Hour
	fetchTimeout   = 5 * time.Second
	mostBytes      = 1 << 20
	mostKeys       = 256
	// A token may name a key that is new, or made up: keys are fetched for it, but not
	// again within this time, which doubles with each failure.
	leastPause   = 5 * time.Second
	longestPause = 5 * time.Minute
)

// Remote are keys of a JSON Web Key Set that is fetched when it is needed. One fetch at
// a time serves all who wait. A key without alg has RS256 if it is of RSA. Keys that are
// not for signatures, secret, or of other kinds, are ignored. A set without any takes all keys away; one
// that cannot be read, or of which no key can be used, is as if the issuer were away.
type Remote struct {
	o       RemoteOptions
	current atomic.Pointer[keySet]

	mu     sync.Mutex
	under  chan struct{} // closed when the fetch under way has ended; nil: none is
	tried  time.Time
	failed int // times in a row
	err    error
}

// keySet is what was fetched.
type keySet struct {
	keys       []*key
	at         time.Time
	generation uint64
}

// NewRemote returns keys that are fetched from a URL. It fetches nothing yet, so that a
// service starts while the issuer is away; see [Remote.Fetch].
func NewRemote(o RemoteOptions) (*Remote, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("jwt: RemoteOptions.URL: %w", err)
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
		return nil, fmt.Errorf("jwt: RemoteOptions.URL is %q; it must begin with https://", o.URL)
	}
	if o.Refresh < 0 || o.Stale < 0 {
		return nil, errors.New("jwt: RemoteOptions.Refresh or Stale is negative")
	}
	if o.Refresh == 0 {
		o.Refresh = defaultRefresh
	}
	if o.Stale == 0 {
		o.Stale = defaultStale
	}
	o.Stale = min(o.Stale, math.MaxInt64-o.Refresh) // their sum is an age
	if o.Client == nil {
		o.Client = &http.Client{Timeout: fetchTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the key set's URL redirects")
		}}
	}
	return &Remote{o: o}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Fetch fetches the keys now: at a service's start, and for its readiness.
func (r *Remote) Fetch(ctx context.Context) error {
	r.mu.Lock()
	done := r.begin()
	r.mu.Unlock()
	return r.await(ctx, done)
}

func (r *Remote) generation(now time.Time) uint64 {
	s := r.current.Load()
	if s == nil {
		return 0
	}
	age := now.Sub(s.at)
	if age > r.o.Refresh {
		r.want() // and do not wait
	}
	if age > r.o.Refresh+r.o.Stale {
		return 0
	}
	return s.generation
}

func (r *Remote) find(ctx context.Context, kid, alg string) ([]*key, error) {
	if found := matching(r.usable(), kid, alg); found != nil {
		return found, nil
	}
	done, err := r.want()
	if done != nil {
		err = r.await(ctx, done)
	}
	keys := r.usable() // a fetch may have ended since, also one that others wanted
	if keys == nil {
		return nil, unavailable(err)
	}
	return matching(keys, kid, alg), nil
}

// usable returns the keys, nil if there are none or all are too old.
func (r *Remote) usable() []*key {
	s := r.current.Load()
	if s == nil || time.Since(s.at) >= r.o.Refresh+r.o.Stale {
		return nil
	}
	return s.keys
}

// want begins a fetch, unless the last one was just now. It returns what is closed when
// the fetch has ended; nil if there is none, and how the last one ended.
func (r *Remote) want() (chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pause := min(leastPause<<min(r.failed, 10), longestPause)
	if r.under == nil && !r.tried.IsZero() && time.Since(r.tried) < pause {
		return nil, r.err
	}
	return r.begin(), nil
}

// begin starts a fetch if none is under way. The caller holds mu.
func (r *Remote) begin() chan struct{} {
	if r.under == nil {
		r.under = make(chan struct{})
		go r.run(r.under)
	}
	return r.under
}

// await waits for a fetch and returns how it ended.
func (r *Remote) await(ctx context.Context, done chan struct{}) error {
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *Remote) run(done chan struct{}) {
	keys, err := r.fetch()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried, r.err, r.under = time.Now(), err, nil
	if err != nil {
		r.failed++
	} else {
		r.failed = 0
	}
	if keys != nil {
		r.replace(keys)
	}
	close(done)
}

// replace takes new keys. What the old ones have verified counts only while all of them
// are still there.
func (r *Remote) replace(keys []*key) {
	s := &keySet{keys: keys, at: time.Now(), generation: 1}
	if old := r.current.Load(); old != nil {
		s.generation = old.generation
		for _, k := range old.keys {
			if !slices.ContainsFunc(keys, k.same) {
				s.generation++
				break
			}
		}
	}
	r.current.Store(s)
}

// same reports whether k and o are one key.
func (k *key) same(o *key) bool {
	equal := false
	switch v := k.Value.(type) {
	case *rsa.PublicKey:
		equal = v.Equal(o.Value)
	case *ecdsa.PublicKey:
		equal = v.Equal(o.Value)
	case ed25519.PublicKey:
		equal = v.Equal(o.Value)
	}
	return equal && k.ID == o.ID && k.Algorithm == o.Algorithm
}

// fetch returns the keys as the issuer has them: none, and an error, if it says that there are none.
// A panic, as of the client's transport, is an error: here it would end the process, and leave all
// waiting.
func (r *Remote) fetch() (keys []*key, err error) {
	defer func() {
		if v := recover(); v != nil {
			keys, err = nil, fmt.Errorf("fetching %s panicked: %v", r.o.URL, v)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 2*fetchTimeout) // also of a client without one
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.o.URL, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := r.o.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", r.o.URL, resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, mostBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > mostBytes {
		return nil, fmt.Errorf("%s answered more than %d bytes", r.o.URL, mostBytes)
	}
	return parseKeySet(b)
}

// jwk is a JSON Web Key, as far as public keys for signatures need it.
type jwk struct {
	Kty, Kid, Alg, Use, Crv, N, E, X, Y string
	Ops                                 []string
}

// decodeMembers decodes those members of a JSON object that are named. Package json by itself takes
// other letters for the same name, and the last of them (RFC 7517, section 4).
func decodeMembers(object []byte, into map[string]any) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil {
		return err
	}
	for name, v := range into {
		if value, ok := all[name]; ok {
			if err := json.Unmarshal(value, v); err != nil {
				return fmt.Errorf("member %s: %w", name, err)
			}
		}
	}
	return nil
}

// parseKeySet reads a key set. It is an error if no key in it can be used. The keys are nil then, unless
// the set says itself that there are none.
func parseKeySet(b []byte) ([]*key, error) {
	var set []json.RawMessage
	if err := decodeMembers(b, map[string]any{"keys": &set}); err != nil {
		return nil, fmt.Errorf("the key set: %w", err)
	}
	if len(set) > mostKeys {
		return nil, fmt.Errorf("the key set has %d keys, more than %d", len(set), mostKeys)
	}
	if set != nil && len(set) == 0 {
		return []*key{}, errors.New("the key set is empty")
	}
	var keys []*key
	var first error
	for i, raw := range set {
		k, err := parseKey(raw)
		if err == nil {
			keys = append(keys, k)
		} else if first == nil {
			first = fmt.Errorf("key %d: %w", i+1, err)
		}
	}
	if len(keys) == 0 {
		return nil, errors.Join(errors.New("the key set has no key that can be used"), first)
	}
	return keys, nil
}

func parseKey(raw []byte) (*key, error) {
	var j jwk
	err := decodeMembers(raw, map[string]any{"kty": &j.Kty, "kid": &j.Kid, "alg": &j.Alg, "use": &j.Use, "key_ops": &j.Ops,
		"crv": &j.Crv, "n": &j.N, "e": &j.E, "x": &j.X, "y": &j.Y})
	if err != nil {
		return nil, err
	}
	if j.Use != "" && j.Use != "sig" || j.Ops != nil && !slices.Contains(j.Ops, "verify") {
		return nil, errors.New("it is not for signatures")
	}
	var otherwise string
	k := Key{ID: j.Kid, Algorithm: j.Alg}
	switch j.Kty {
	case "RSA":
		otherwise = "RS256"
		k.Value, err = j.rsa()
	case "EC":
		otherwise = map[string]string{"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}[j.Crv]
		k.Value, err = j.ec()
	case "OKP":
		otherwise = "EdDSA"
		k.Value, err = j.ed25519()
	default:
		err = fmt.Errorf("its kty is %q", j.Kty)
	}
	if err != nil {
		return nil, err
	}
	if k.Algorithm == "" {
		k.Algorithm = otherwise
	}
	return newKey(k)
}

func (j *jwk) rsa() (*rsa.PublicKey, error) {
	n, err := decode(j.N)
	if err != nil {
		return nil, err
	}
	e, err := decode(j.E)
	if err != nil || len(e) > 4 {
		return nil, errors.New("its exponent is malformed or too large")
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}, nil
}

func (j *jwk) ed25519() (ed25519.PublicKey, error) {
	if j.Crv != "Ed25519" {
		return nil, fmt.Errorf("its curve is %q", j.Crv)
	}
	return decode(j.X)
}

func (j *jwk) ec() (*ecdsa.PublicKey, error) {
	curve := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}[j.Crv]
	if curve == nil {
		return nil, fmt.Errorf("its curve is %q", j.Crv)
	}
	x, errX := decode(j.X)
	y, errY := decode(j.Y)
	if size := (curve.Params().BitSize + 7) / 8; errX != nil || errY != nil || len(x) != size || len(y) != size {
		return nil, errors.New("its point is malformed")
	}
	return ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, x, y)) // SEC 1, section 2.3.3
}
