package accept_test

import (
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/accept"
)

func TestEncoding(t *testing.T) {
	for field, want := range map[string]string{
		"gzip":                             "gzip",
		"GZIP":                             "gzip",
		"x-gzip":                           "gzip",
		"br, gzip":                         "br",
		"gzip, br, zstd":                   "zstd",
		"gzip;q=1.0, br;q=0.9":             "gzip",
		"gzip;q=0.001":                     "gzip",
		"gzip;q=0":                         "",
		"gzip;q=0.000, br":                 "br",
		"*":                                "zstd",
		"*;q=0":                            "",
		"*;q=0, gzip":                      "gzip",
		"zstd;q=0, *":                      "br",
		"identity, gzip;q=0.5":             "",
		"identity;q=0.5, gzip":             "gzip",
		"identity;q=0, *;q=0":              "",
		"gzip ; q=0.5 , br ; q=0.7":        "br",
		"gzip;Q=0.5":                       "gzip",
		"gzip;q=2":                         "",
		"gzip;q=1.001":                     "",
		"gzip;q=0.1234":                    "",
		"gzip;q=-1":                        "",
		"gzip;q=":                          "",
		"gzip;q=.5":                        "",
		"gzip;level=1":                     "",
		"gzipped":                          "",
		"deflate, compress":                "",
		",,, gzip ,":                       "gzip",
		"":                                 "",
		"br;q=0.5, gzip;q=0.5, x;q=0.9":    "br",
		strings.Repeat("x,", 600) + "gzip": "",
	} {
		if got := accept.Encoding([]string{field}, []string{"zstd", "br", "gzip"}); got != want {
			t.Errorf("%q: got %q, want %q", field, got, want)
		}
	}
	if got := accept.Encoding([]string{"br;q=0.5", "gzip"}, []string{"zstd", "br", "gzip"}); got != "gzip" {
		t.Errorf("two lines: got %q", got)
	}
}

// FuzzEncoding has nothing offered that the field does not name.
func FuzzEncoding(f *testing.F) {
	f.Add("gzip, br;q=0.5")
	f.Add("*;q=0.1, zstd;q=0")
	f.Fuzz(func(t *testing.T, field string) {
		got := accept.Encoding([]string{field}, []string{"zstd", "br", "gzip"})
		if !strings.Contains(field, "*") && !strings.Contains(strings.ToLower(field), got) {
			t.Errorf("%q: got %q", field, got)
		}
	})
}
