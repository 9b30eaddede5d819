package cli_test

import (
	"slices"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// What is secret by its name is masked wherever it stands in a word. A host and its port are not.
func TestMaskSecrets(t *testing.T) {
	for word, want := range map[string]string{
		"Authorization: Bearer hunter2":                       "Authorization: …",
		"X-Api-Key:hunter2":                                   "X-Api-Key:…",
		"-HCookie: id=hunter2":                                "-HCookie: …",
		"DB_PASSWORD=hunter2 GOGC=50 ./a":                     "DB_PASSWORD=… GOGC=50 ./a",
		"API_SECRET='hunter 2' ./a -x":                        "API_SECRET=… ./a -x",
		`API_TOKEN="hunter 2" ./a -x`:                         "API_TOKEN=… ./a -x",
		"DATABASE_URL=postgres://me:hunter2@db/shop ./a":      "DATABASE_URL=postgres://me:…@db/shop ./a",
		"http://me:hunt@er2@127.0.0.1:8080/":                  "http://me:…@127.0.0.1:8080/",
		"/orders/7?token=hunter2":                             "/orders/7?token=…",
		`{"user":"me","password":"hunter2"}`:                  `{"user":"me","password":…`,
		"X-Auth: hunter2":                                     "X-Auth: …",
		"BASIC_AUTH=me:hunter2 MYSQL_PWD=hunter2 ./a":         "BASIC_AUTH=… MYSQL_PWD=… ./a",
		"DSN=me:hunter2@tcp(db:3306)/shop ./a":                "DSN=me:…@tcp(db:3306)/shop ./a",
		"./a --db-password hunter2 -x 'b c'":                  "./a --db-password … -x 'b c'",
		"./a -token 'hunter 2' -listen :80":                   "./a -token … -listen :80",
		"./a --password -x --tls-key tls.pem":                 "./a --password -x --tls-key tls.pem",
		"/orders?author=7":                                    "/orders?author=7",
		"http://127.0.0.1:8080":                               "http://127.0.0.1:8080",
		"http://monkey:8080/orders":                           "http://monkey:8080/orders",
		"http://api.tokens:8080/a@b":                          "http://api.tokens:8080/a@b",
		"Accept: text/html":                                   "Accept: text/html",
		"cpu_per_request<=5%":                                 "cpu_per_request<=5%",
		"GOGC=400 ./cmd/api -listen 127.0.0.1:8080 -tag v1.0": "GOGC=400 ./cmd/api -listen 127.0.0.1:8080 -tag v1.0",
	} {
		if got := cli.MaskSecrets(word); got != want {
			t.Errorf("MaskSecrets(%q) = %q, want %q", word, got, want)
		}
	}
	if !cli.IsSecret("Cookie") || !cli.IsSecret("DB_PASSWD") || cli.IsSecret("GOGC") {
		t.Error("the names of secrets are not told from others")
	}
	words := []string{"./a", "--password", "hunter2", "--token-file", "-v", "TOKEN=hunter2"}
	if got, want := cli.MaskWords(words), []string{"./a", "--password", "…", "--token-file", "-v", "TOKEN=…"}; !slices.Equal(got, want) {
		t.Errorf("MaskWords(%q) = %q, want %q", words, got, want)
	}
}
