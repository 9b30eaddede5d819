package jwt

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rsa"
	_ "crypto/sha256" // the hashes of the algorithms
	_ "crypto/sha512"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash"
	"math/big"
	"sync"
	"time"
)

// Key is a key that tokens may be signed with. A key has one algorithm, whatever a
// token says (RFC 8725, section 3.1).
type Key struct {
	// ID is the kid that tokens name. Tokens that name none are tried with all keys.
	ID string
	// Algorithm is HS256, HS384, HS512, RS256, RS384, RS512, PS256, PS384, PS512,
	// ES256, ES384, ES512 or EdDSA, which is Ed25519 and may be called so (RFC 9864).
	Algorithm string
	// Value is a []byte no shorter than the hash for HS, an [*rsa.PublicKey] of 2048
	// bits and more, an [*ecdsa.PublicKey] of the algorithm's curve, or an
	// [ed25519.PublicKey].
	Value any
}

// Keys are the keys that tokens may be signed with: of [Static] or [NewRemote].
type Keys interface {
	// find returns the keys of that name and algorithm, or an error that is
	// errUnavailable.
	find(ctx context.Context, kid, alg string) ([]*key, error)
	// generation changes when a key is removed. It is 0 if there are none, or all are too
	// old. It sees to it that keys are fetched anew when it is time.
	generation(now time.Time) uint64
}

// key is a Key that was checked.
type key struct {
	Key
	verify func(signed, signature []byte) bool
}

type static []*key

// Static returns keys that never change, or an error that says which is wrong.
func Static(keys ...Key) (Keys, error) {
	if len(keys) == 0 {
		return nil, errors.New("jwt: no keys")
	}
	var all static
	for _, k := range keys {
		checked, err := newKey(k)
		if err != nil {
			return nil, fmt.Errorf("jwt: key %q: %w", k.ID, err)
		}
		all = append(all, checked)
	}
	return all, nil
}

func (s static) find(_ context.Context, kid, alg string) ([]*key, error) {
	return matching(s, kid, alg), nil
}

func (s static) generation(time.Time) uint64 { return 1 }

// mostTried bounds the signatures that a token which names no key has checked.
const mostTried = 8

// matching returns the keys that a token may be signed with.
func matching(all []*key, kid, alg string) []*key {
	one := -1
	for i, k := range all {
		if k.Algorithm != alg || kid != "" && k.ID != kid {
			continue
		}
		if one >= 0 {
			return several(all, kid, alg)
		}
		one = i
	}
	if one < 0 {
		return nil
	}
	return all[one : one+1]
}

func several(all []*key, kid, alg string) (found []*key) {
	for _, k := range all {
		if k.Algorithm == alg && (kid == "" || k.ID == kid) && len(found) < mostTried {
			found = append(found, k)
		}
	}
	return found
}

var hashes = map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}

// algorithmOf returns the one name of an algorithm that has two.
func algorithmOf(name string) string {
	if name == "Ed25519" { // as RFC 9864 has it
		return "EdDSA"
	}
	return name
}

// newKey checks a key against its algorithm.
func newKey(k Key) (*key, error) {
	k.Algorithm = algorithmOf(k.Algorithm)
	if k.Algorithm == "EdDSA" {
		pub, ok := k.Value.(ed25519.PublicKey)
		if !ok || len(pub) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("EdDSA needs an ed25519.PublicKey of %d bytes", ed25519.PublicKeySize)
		}
		return &key{k, func(signed, signature []byte) bool { return ed25519.Verify(pub, signed, signature) }}, nil
	}
	h, ok := hashes[k.Algorithm[min(2, len(k.Algorithm)):]]
	if !ok {
		return nil, fmt.Errorf("field Algorithm is %q; set one that Key names, such as RS256", k.Algorithm)
	}
	var verify func(signed, signature []byte) bool
	var err error
	switch k.Algorithm[:2] {
	case "HS":
		verify, err = verifyHMAC(k.Value, h)
	case "RS":
		verify, err = verifyRSA(k.Value, h, func(pub *rsa.PublicKey, sum, signature []byte) error {
			return rsa.VerifyPKCS1v15(pub, h, sum, signature)
		})
	case "PS":
		// The salt is as long as the hash (RFC 7518, section 3.5).
		o := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}
		verify, err = verifyRSA(k.Value, h, func(pub *rsa.PublicKey, sum, signature []byte) error {
			return rsa.VerifyPSS(pub, h, sum, signature, o)
		})
	case "ES":
		verify, err = verifyECDSA(k.Value, h)
	default:
		err = fmt.Errorf("field Algorithm is %q; set one that Key names, such as RS256", k.Algorithm)
	}
	return &key{k, verify}, err
}

func verifyHMAC(value any, h crypto.Hash) (func(signed, signature []byte) bool, error) {
	secret, ok := value.([]byte)
	if !ok {
		return nil, fmt.Errorf("field Value is a %T; set a []byte", value)
	}
	if len(secret) < h.Size() {
		return nil, fmt.Errorf("field Value has %d bytes; set %d or more (RFC 7518, section 3.2)", len(secret), h.Size())
	}
	secret = append([]byte(nil), secret...)
	macs := sync.Pool{New: func() any { return hmac.New(h.New, secret) }}
	return func(signed, signature []byte) bool {
		mac := macs.Get().(hash.Hash)
		defer macs.Put(mac)
		mac.Reset()
		mac.Write(signed)
		var sum [64]byte
		return subtle.ConstantTimeCompare(mac.Sum(sum[:0]), signature) == 1
	}, nil
}

func verifyRSA(value any, h crypto.Hash, check func(*rsa.PublicKey, []byte, []byte) error) (func(signed, signature []byte) bool, error) {
	pub, ok := value.(*rsa.PublicKey)
	if !ok || pub == nil || pub.N == nil || pub.N.BitLen() < 2048 || pub.E < 3 || pub.E%2 == 0 {
		return nil, errors.New("it needs an *rsa.PublicKey of at least 2048 bits (RFC 7518, section 3.3)")
	}
	sums := summer(h)
	return func(signed, signature []byte) bool {
		var sum [64]byte
		return check(pub, sums(sum[:0], signed), signature) == nil
	}, nil
}

func verifyECDSA(value any, h crypto.Hash) (func(signed, signature []byte) bool, error) {
	curve := map[crypto.Hash]elliptic.Curve{
		crypto.SHA256: elliptic.P256(), crypto.SHA384: elliptic.P384(), crypto.SHA512: elliptic.P521(),
	}[h]
	pub, ok := value.(*ecdsa.PublicKey)
	if !ok || pub == nil || pub.Curve != curve {
		return nil, fmt.Errorf("it needs an *ecdsa.PublicKey on %s (RFC 7518, section 3.4)", curve.Params().Name)
	}
	if _, err := pub.ECDH(); err != nil {
		return nil, errors.New("the point is not on its curve")
	}
	size := (curve.Params().BitSize + 7) / 8
	sums := summer(h)
	return func(signed, signature []byte) bool {
		if len(signature) != 2*size {
			return false
		}
		var sum [64]byte
		r, s := new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:])
		return ecdsa.Verify(pub, sums(sum[:0], signed), r, s)
	}, nil
}

// summer returns what appends the hash of data to b.
func summer(h crypto.Hash) func(b, data []byte) []byte {
	pool := sync.Pool{New: func() any { return h.New() }}
	return func(b, data []byte) []byte {
		sum := pool.Get().(hash.Hash)
		defer pool.Put(sum)
		sum.Reset()
		sum.Write(data)
		return sum.Sum(b)
	}
}
