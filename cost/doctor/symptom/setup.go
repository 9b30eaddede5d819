package symptom

import "github.com/tarehq/tare/cost"

// setups are what programs prepare once and use again, by the functions that prepare it.
var setups = []struct {
	doing string
	about Match
}{
	{"compiling regular expressions", Calls("regexp.Compile", "regexp.MustCompile", "regexp.compile", "github.com/dlclark/regexp2.Compile", "github.com/dlclark/regexp2.MustCompile")},
	{"parsing templates", Calls("text/template.(*Template).Parse", "text/template.Parse", "html/template.(*Template).Parse", "html/template.Parse", "html/template.escapeTemplate")},
	{"parsing or making keys", Calls("crypto/x509.Parse", "crypto/x509.(*CertPool).AppendCertsFromPEM", "crypto/x509.SystemCertPool", "crypto/tls.X509KeyPair", "crypto/tls.LoadX509KeyPair", "crypto/rsa.GenerateKey", "encoding/pem.Decode",
		"github.com/lestrrat-go/jwx/v2/jwk.Parse", "github.com/lestrrat-go/jwx/v3/jwk.Parse", "github.com/go-jose/go-jose/v4.(*JSONWebKey).UnmarshalJSON")},
	{"loading time zones", Calls("time.LoadLocation")},
	{"making validators and schemas", Calls("github.com/go-playground/validator/v10.New", "github.com/santhosh-tekuri/jsonschema/v5.(*Compiler)", "github.com/santhosh-tekuri/jsonschema/v6.(*Compiler)",
		"github.com/xeipuuv/gojsonschema.NewSchema", "github.com/getkin/kin-openapi/openapi3.(*Loader)")},
}

// Setup names what a stack prepares and a program could prepare once, such as "compiling
// regular expressions"; it is "" of all else.
func Setup(frames []cost.Frame) string {
	for _, s := range setups {
		if s.about(frames) >= 0 {
			return s.doing
		}
	}
	return ""
}

var hashing = Calls("golang.org/x/crypto/bcrypt.", "golang.org/x/crypto/scrypt.", "golang.org/x/crypto/argon2.", "golang.org/x/crypto/pbkdf2.", "crypto/pbkdf2.")

// Hashing matches hashes that are slow on purpose, as those of passwords are.
func Hashing(frames []cost.Frame) int { return hashing(frames) }
