// Package extended has the standard library's HTTP/2 take extended CONNECT (RFC 8441) in programs
// that import it.
//
// net/http looks for http2xconnect=1 in GODEBUG as it is initialised, and offers no other way.
// Of packages that are ready to be initialised the first by path is (The Go Programming Language
// Specification, Package initialization): this one, which imports os alone, comes before net/http.
package extended

import "os"

var _ = os.Setenv("GODEBUG", with(os.Getenv("GODEBUG")))

// with adds the setting to others.
func with(settings string) string {
	if settings != "" {
		settings += ","
	}
	return settings + "http2xconnect=1"
}
