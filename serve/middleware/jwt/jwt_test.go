package jwt_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/jwt"
)

func Example() {
	secret := []byte("a secret of at least thirty-two bytes")
	keys, err := jwt.Static(jwt.Key{Algorithm: "HS256", Value: secret})
	if err != nil {
		panic(err)
	}
	auth, err := jwt.New(jwt.Options{Keys: keys, Audience: []string{"orders"}})
	if err != nil {
		panic(err)
	}
	h := auth.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello", jwt.From(r.Context()).Subject)
	}))
	token := sign(secret, `{"alg":"HS256"}`, fmt.Sprintf(`{"sub":"ann","aud":"orders","exp":%d}`, time.Now().Add(time.Hour).Unix()))
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Print(w.Body)
	// Output: hello ann
}

// sign makes a token by HMAC.
func sign(secret []byte, header, claims string) string {
	signed := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

var secret = []byte("0123456789abcdef0123456789abcdef")

func verifier(t testing.TB, o jwt.Options, keys ...jwt.Key) *jwt.Verifier {
	t.Helper()
	if o.Keys == nil {
		if keys == nil {
			keys = []jwt.Key{{ID: "k1", Algorithm: "HS256", Value: secret}}
		}
		var err error
		if o.Keys, err = jwt.Static(keys...); err != nil {
			t.Fatal(err)
		}
	}
	v, err := jwt.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func in(d time.Duration) int64 { return time.Now().Add(d).Unix() }

func TestClaims(t *testing.T) {
	o := jwt.Options{Issuer: "https://issuer", Audience: []string{"orders", "billing"}}
	good := map[string]any{"iss": "https://issuer", "sub": "ann", "aud": "orders", "exp": in(time.Hour), "nbf": in(-time.Hour), "jti": "7", "scope": "read"}
	for name, c := range map[string]struct {
		change map[string]any // nil: the claim is missing
		want   string         // in the error; empty: accepted
	}{
		"good":               {nil, ""},
		"audiences":          {map[string]any{"aud": []string{"x", "billing"}}, ""},
		"other audience":     {map[string]any{"aud": "x"}, "audience"},
		"no audience":        {map[string]any{"aud": nil}, "audience"},
		"audience of null":   {map[string]any{"aud": []any{nil}}, "type"},
		"audience a number":  {map[string]any{"aud": 7}, "type"},
		"other issuer":       {map[string]any{"iss": "https://issuer/"}, "issuer"},
		"no issuer":          {map[string]any{"iss": nil}, "issuer"},
		"issuer a list":      {map[string]any{"iss": []string{"https://issuer"}}, "type"},
		"expired":            {map[string]any{"exp": in(-2 * time.Minute)}, "expired"},
		"expired, in leeway": {map[string]any{"exp": in(-30 * time.Second)}, ""},
		"never ends":         {map[string]any{"exp": nil}, "no end"},
		"ends as text":       {map[string]any{"exp": "1"}, "date"},
		"ends at a fraction": {map[string]any{"exp": float64(in(time.Hour)) + .5}, ""},
		"ends after all":     {map[string]any{"exp": 1e300}, "date"},
		"ends before all":    {map[string]any{"exp": -1}, "date"},
		"not yet":            {map[string]any{"nbf": in(time.Hour)}, "not valid yet"},
		"not yet, in leeway": {map[string]any{"nbf": in(30 * time.Second)}, ""},
		"only EXP":           {map[string]any{"exp": nil, "EXP": in(time.Hour)}, "no end"},
	} {
		claims := maps.Clone(good)
		for k, v := range c.change {
			claims[k] = v
			if v == nil {
				delete(claims, k)
			}
		}
		b, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		got, err := verifier(t, o).Verify(t.Context(), sign(secret, `{"alg":"HS256"}`, string(b)))
		if c.want == "" && (err != nil || got.Subject != "ann" || got.ID != "7" || string(got.Claim("scope")) != `"read"`) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
}

// TestMalformed tries tokens that are signed well.
func TestMalformed(t *testing.T) {
	end := in(time.Hour)
	v := verifier(t, jwt.Options{})
	for name, c := range map[string]struct{ header, claims string }{
		"end twice":        {`{"alg":"HS256"}`, fmt.Sprintf(`{"exp":1,"exp":%d}`, end)},
		"end twice, \\u":   {`{"alg":"HS256"}`, fmt.Sprintf(`{"exp":%d,"\u0065xp":%d}`, end, end)},
		"alg twice":        {`{"alg":"none","alg":"HS256"}`, fmt.Sprintf(`{"exp":%d}`, end)},
		"none":             {`{"alg":"none"}`, fmt.Sprintf(`{"exp":%d}`, end)},
		"no alg":           {`{}`, fmt.Sprintf(`{"exp":%d}`, end)},
		"alg a list":       {`{"alg":["HS256"]}`, fmt.Sprintf(`{"exp":%d}`, end)},
		"another alg":      {`{"alg":"HS512"}`, fmt.Sprintf(`{"exp":%d}`, end)},
		"lower case":       {`{"alg":"hs256"}`, fmt.Sprintf(`{"exp":%d}`, end)},
		"another key":      {`{"alg":"HS256","kid":"k2"}`, fmt.Sprintf(`{"exp":%d}`, end)},
		"crit":             {`{"alg":"HS256","crit":["exp"]}`, fmt.Sprintf(`{"exp":%d}`, end)},
		"not encoded":      {`{"alg":"HS256","b64":false}`, fmt.Sprintf(`{"exp":%d}`, end)},
		"another type":     {`{"alg":"HS256","typ":"logout+jwt"}`, fmt.Sprintf(`{"exp":%d}`, end)},
		"claims a list":    {`{"alg":"HS256"}`, `[1]`},
		"claims null":      {`{"alg":"HS256"}`, `null`},
		"claims cut":       {`{"alg":"HS256"}`, `{"exp":`},
		"claims not UTF-8": {`{"alg":"HS256"}`, fmt.Sprintf("{\"sub\":\"\xff\",\"exp\":%d}", end)},
		"claims and more":  {`{"alg":"HS256"}`, fmt.Sprintf(`{"exp":%d}{}`, end)},
	} {
		if _, err := v.Verify(t.Context(), sign(secret, c.header, c.claims)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	good := sign(secret, `{"alg":"HS256","typ":"JWT","kid":"k1"}`, fmt.Sprintf(` { "exp" : %d , "x" : {"exp":[1,"}"]} } `, end))
	if _, err := v.Verify(t.Context(), good); err != nil {
		t.Errorf("a good one: %v", err)
	}
	for name, text := range map[string]string{
		"empty": "", "dots": "..", "a part more": good + ".", "padding": good + "=", "line end": good + "\n",
		"line end within": strings.Replace(good, ".", "\n.", 1), "cut": good[:len(good)-1], "standard alphabet": strings.Replace(good, "_", "/", 1) + "+",
		"long": strings.Repeat("a", 17<<10), "five parts": "a.b.c.d.e",
	} {
		if _, err := v.Verify(t.Context(), text); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	// The last character has bits that no byte needs: only zero is canonical.
	last := strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", good[len(good)-1])
	if _, err := v.Verify(t.Context(), good[:len(good)-1]+"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[last+1:last+2]); err == nil {
		t.Error("an encoding that is not canonical is accepted")
	}
}

// TestConfusion takes each public key for the secret of HMAC, and keys for algorithms
// that are not theirs.
func TestConfusion(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pub := rsaKey.N.Bytes()
	v := verifier(t, jwt.Options{}, jwt.Key{ID: "r", Algorithm: "RS256", Value: &rsaKey.PublicKey})
	if _, err := v.Verify(t.Context(), sign(pub, `{"alg":"HS256","kid":"r"}`, fmt.Sprintf(`{"exp":%d}`, in(time.Hour)))); err == nil {
		t.Error("a public key is taken for a secret")
	}
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"PS256"}`)) + "." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, in(time.Hour)))
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPSS(rand.Reader, rsaKey, crypto.SHA256, sum[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	if err != nil {
		t.Fatal(err)
	}
	token := signed + "." + base64.RawURLEncoding.EncodeToString(signature)
	if _, err := v.Verify(t.Context(), token); err == nil {
		t.Error("a key for RS256 verified PS256")
	}
	if _, err := verifier(t, jwt.Options{}, jwt.Key{Algorithm: "PS256", Value: &rsaKey.PublicKey}).Verify(t.Context(), token); err != nil {
		t.Errorf("PS256: %v", err)
	}
}

// TestEd25519 has one algorithm under two names, of the key and of the token.
func TestEd25519(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, ofKey := range []string{"EdDSA", "Ed25519"} {
		v := verifier(t, jwt.Options{}, jwt.Key{Algorithm: ofKey, Value: public})
		for ofToken, want := range map[string]bool{"EdDSA": true, "Ed25519": true, "Ed448": false} {
			signed := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":%q}`, ofToken)) + "." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, in(time.Hour)))
			text := signed + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(private, []byte(signed)))
			if _, err := v.Verify(t.Context(), text); (err == nil) != want {
				t.Errorf("a token of %s by a key of %s: %v", ofToken, ofKey, err)
			}
		}
	}
}

func TestKeys(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Log(err) // then nobody has one
		small = new(rsa.PrivateKey)
	}
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ed, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]jwt.Key{
		"none": {Algorithm: "none"}, "no algorithm": {Value: secret}, "short": {Algorithm: "HS256", Value: secret[:31]},
		"short for 512": {Algorithm: "HS512", Value: secret}, "a string": {Algorithm: "HS256", Value: string(secret)},
		"public for HS": {Algorithm: "HS256", Value: &p256.PublicKey}, "another curve": {Algorithm: "ES384", Value: &p256.PublicKey},
		"small": {Algorithm: "RS256", Value: &small.PublicKey}, "nil": {Algorithm: "RS256", Value: (*rsa.PublicKey)(nil)},
		"short Ed25519": {Algorithm: "EdDSA", Value: ed[:31]},
		"unknown":       {Algorithm: "XX256", Value: secret}, "H": {Algorithm: "H", Value: secret},
	} {
		if _, err := jwt.Static(k); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for want, k := range map[string]jwt.Key{
		"Value is a string; set a []byte": {Algorithm: "HS256", Value: string(secret)},
		"Value has 5 bytes; set 32":       {Algorithm: "HS256", Value: secret[:5]},
		`Algorithm is ""; set one`:        {Value: secret},
	} {
		if _, err := jwt.Static(k); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if _, err := jwt.Static(); err == nil {
		t.Error("no keys are accepted")
	}
	if _, err := jwt.Static(jwt.Key{Algorithm: "EdDSA", Value: ed}, jwt.Key{Algorithm: "ES256", Value: &p256.PublicKey}); err != nil {
		t.Error(err)
	}
}

func TestAnswers(t *testing.T) {
	good := sign(secret, `{"alg":"HS256"}`, fmt.Sprintf(`{"sub":"ann","exp":%d}`, in(time.Hour)))
	for name, c := range map[string]struct {
		o      jwt.Options
		fields []string
		code   int
		field  string // WWW-Authenticate
		sub    string
	}{
		"good":             {jwt.Options{}, []string{"Bearer " + good}, 200, "", "ann"},
		"lower case":       {jwt.Options{}, []string{"bearer  " + good}, 200, "", "ann"},
		"none":             {jwt.Options{}, nil, 401, `Bearer realm="restricted"`, ""},
		"none, optional":   {jwt.Options{Optional: true}, nil, 200, "", ""},
		"bad, optional":    {jwt.Options{Optional: true}, []string{"Bearer x"}, 401, `Bearer error="invalid_token", error_description="the token is malformed"`, ""},
		"another scheme":   {jwt.Options{}, []string{"Basic " + good}, 401, `Bearer realm="restricted"`, ""},
		"two":              {jwt.Options{}, []string{"Bearer " + good, "Bearer " + good}, 401, `Bearer realm="restricted"`, ""},
		"own place":        {jwt.Options{Token: func(r *http.Request) string { return good }}, nil, 200, "", "ann"},
		"scheme by itself": {jwt.Options{}, []string{"Bearer"}, 401, `Bearer realm="restricted"`, ""},
	} {
		v := verifier(t, c.o)
		h := chain.Must(chain.New(v.Middleware).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if tok := jwt.From(r.Context()); (tok == nil) != (c.sub == "") || tok != nil && tok.Subject != c.sub {
				t.Errorf("%s: the handler got %+v", name, tok)
			}
		})))
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Authorization"] = c.fields
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.code || w.Header().Get("WWW-Authenticate") != c.field {
			t.Errorf("%s: %d, WWW-Authenticate %q", name, w.Code, w.Header().Get("WWW-Authenticate"))
		}
		if refused := v.Refused() == 1; refused != (c.code != 200) {
			t.Errorf("%s: %d refused", name, v.Refused())
		}
	}
}

// TestCache sees a token until its end, and no other instead of it.
func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := verifier(t, jwt.Options{Cache: 8, Leeway: -1})
		token := func(sub string) string {
			return sign(secret, `{"alg":"HS256"}`, fmt.Sprintf(`{"sub":%q,"exp":%d}`, sub, in(time.Minute)))
		}
		ann := token("ann")
		for range 3 {
			if got, err := v.Verify(t.Context(), ann); err != nil || got.Subject != "ann" {
				t.Fatal(got, err)
			}
		}
		if v.Hits() != 2 {
			t.Errorf("%d hits of 2", v.Hits())
		}
		for i := range 1000 { // in a cache of eight
			sub := fmt.Sprint(i)
			text := token(sub)
			for range 2 {
				if got, err := v.Verify(t.Context(), text); err != nil || got.Subject != sub {
					t.Fatal(got, err)
				}
			}
			at := strings.LastIndexByte(text, '.') + 1
			other := map[bool]string{true: "B", false: "A"}[text[at] == 'A']
			if _, err := v.Verify(t.Context(), text[:at]+other+text[at+1:]); err == nil {
				t.Fatal("another signature is accepted")
			}
		}
		last := token("last")
		v.Verify(t.Context(), last)
		time.Sleep(59 * time.Second)
		if _, err := v.Verify(t.Context(), last); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if _, err := v.Verify(t.Context(), last); err == nil {
			t.Error("accepted beyond its end")
		}
	})
}

func TestOptions(t *testing.T) {
	keys, err := jwt.Static(jwt.Key{Algorithm: "HS256", Value: secret})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []jwt.Options{{}, {Keys: keys, Leeway: 2 * time.Hour}, {Keys: keys, Cache: 1 << 30}} {
		if _, err := jwt.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// FuzzVerify never panics, and accepts nothing that was not signed.
func FuzzVerify(f *testing.F) {
	good := sign(secret, `{"alg":"HS256","kid":"k1"}`, `{"exp":4000000000,"aud":["a"],"sub":"\u0041"}`)
	f.Add(good)
	f.Add("e30.e30.")
	v := verifier(f, jwt.Options{Cache: -1})
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := v.Verify(context.Background(), text); err == nil && text != good {
			t.Errorf("%q is accepted", text)
		}
	})
}

// FuzzClaims signs anything: what is accepted decodes as JSON with the same claims.
func FuzzClaims(f *testing.F) {
	f.Add(`{"alg":"HS256"}`, `{"exp":4000000000,"aud":["a"],"sub":"\u0041","x":[{"exp":1}]}`)
	v := verifier(f, jwt.Options{Cache: -1})
	f.Fuzz(func(t *testing.T, header, claims string) {
		tok, err := v.Verify(context.Background(), sign(secret, header, claims))
		if err != nil {
			return
		}
		var all map[string]any
		if err := tok.Claims(&all); err != nil {
			t.Fatalf("%q: %v", claims, err)
		}
		if sub, _ := all["sub"].(string); sub != tok.Subject {
			t.Errorf("%q: subject %q", claims, tok.Subject)
		}
		if exp, ok := all["exp"].(float64); !ok || time.Unix(int64(exp), 0).Unix() != tok.Expires.Unix() {
			t.Errorf("%q: ends %v", claims, tok.Expires)
		}
	})
}

// BenchmarkToken verifies one token over and over.
func BenchmarkToken(b *testing.B) {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	claims := fmt.Sprintf(`{"iss":"https://issuer.example/","sub":"user-4711","aud":["orders","billing"],"exp":%d,"iat":%d,"jti":"0192f8c7-89ab-7cde-8f01-23456789abcd","scope":"read write"}`, in(time.Hour), in(0))
	hs := sign(secret, `{"alg":"HS256","typ":"JWT"}`, claims)
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, p256, sum[:])
	if err != nil {
		b.Fatal(err)
	}
	var signature [64]byte
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	es := signed + "." + base64.RawURLEncoding.EncodeToString(signature[:])
	keys := []jwt.Key{{Algorithm: "HS256", Value: secret}, {Algorithm: "ES256", Value: &p256.PublicKey}}
	for _, c := range []struct {
		name  string
		cache int
		token string
	}{{"cached", 0, hs}, {"HS256", -1, hs}, {"ES256", -1, es}} {
		b.Run(c.name, func(b *testing.B) {
			v := verifier(b, jwt.Options{Cache: c.cache}, keys...)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(b.Context(), c.token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
