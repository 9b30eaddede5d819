package jwt

import (
	"encoding/json"
	"os"
	"testing"
)

// TestWycheproof has the public test vectors of Project Wycheproof: what must be
// accepted is, and nothing else.
func TestWycheproof(t *testing.T) {
	b, err := os.ReadFile("testdata/wycheproof.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		NumberOfTests int
		TestGroups    []struct {
			Comment         string
			Public, Private json.RawMessage
			Tests           []struct {
				TcID                 int
				Comment, Jws, Result string
			}
		}
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	n, valid := 0, 0
	for _, g := range file.TestGroups {
		raw := g.Public
		if raw == nil {
			raw = g.Private
		}
		var keys static
		k, keyErr := vectorKey(raw)
		if keyErr == nil {
			keys = static{k}
		}
		for _, c := range g.Tests {
			claims, _, err := verifySignature(t.Context(), keys, c.Jws)
			if err == nil {
				_, err = decode(claims)
			}
			if accepted := err == nil; accepted != (c.Result == "valid") != exceptions[c.TcID] {
				t.Errorf("%s %d, %s: accepted %t, the vector is %s (key: %v; token: %v)", g.Comment, c.TcID, c.Comment, accepted, c.Result, keyErr, err)
			}
			n++
			if c.Result == "valid" {
				valid++
			}
		}
	}
	if n != file.NumberOfTests || n != 401 || valid != 46 {
		t.Errorf("%d vectors, %d of them valid", n, valid)
	}
}

// exceptions are vectors that this package decides otherwise.
var exceptions = map[int]bool{
	346: true, 350: true, // valid PS384 by a key whose alg is PS256: here a key has one algorithm
	367: true, 370: true, // invalid, though byte for byte the valid vector 357
	372: true, 373: true, // valid with a character that base64url does not have: here it is malformed
}

// vectorKey returns the key of a group, secret ones too. The vectors call ES512 ES521 in
// two keys.
func vectorKey(raw json.RawMessage) (*key, error) {
	var j struct{ Kty, Kid, Alg, K string }
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, err
	}
	switch {
	case j.Kty == "oct":
		secret, err := decode(j.K)
		if err != nil {
			return nil, err
		}
		return newKey(Key{j.Kid, j.Alg, secret})
	case j.Alg == "ES521":
		var all map[string]any
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, err
		}
		all["alg"] = "ES512"
		raw, _ = json.Marshal(all)
	}
	return parseKey(raw)
}
