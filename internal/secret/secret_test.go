package secret_test

import (
	"slices"
	"testing"

	"github.com/tarehq/tare/internal/secret"
)

// What is secret by its name is masked wherever it stands in a word. A host and its port are not.
func TestMask(t *testing.T) {
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
		"--on=monkey:7411,tokens:7411":                        "--on=monkey:7411,tokens:7411",
		"monkey:8080/orders":                                  "monkey:8080/orders",
		`"pass-key":1234`:                                     `"pass-key":…`,
		"Api-Key: 1234":                                       "Api-Key: …",
		"http://api.tokens:8080/a@b":                          "http://api.tokens:8080/a@b",
		"Accept: text/html":                                   "Accept: text/html",
		"Authorization: Bearer ${TOKEN}":                      "Authorization: Bearer ${TOKEN}",
		"Authorization: Bearer ${A} hunter2":                  "Authorization: …",
		`{"token":"${T}","password":"hunter2"}`:               `{"token":…`,
		"DATABASE_URL=postgres://me:${PW}@db/shop ./a":        "DATABASE_URL=postgres://me:${PW}@db/shop ./a",
		"API_TOKEN=${TOKEN} DB_PASSWORD=hunter2 ./a":          "API_TOKEN=${TOKEN} DB_PASSWORD=… ./a",
		"cpu_per_request<=5%":                                 "cpu_per_request<=5%",
		"GOGC=400 ./cmd/api -listen 127.0.0.1:8080 -tag v1.0": "GOGC=400 ./cmd/api -listen 127.0.0.1:8080 -tag v1.0",
	} {
		if got := secret.Mask(word); got != want {
			t.Errorf("Mask(%q) = %q, want %q", word, got, want)
		}
	}
	if !secret.Is("Cookie") || !secret.Is("DB_PASSWD") || secret.Is("GOGC") {
		t.Error("the names of secrets are not told from others")
	}
	words := []string{"./a", "--password", "hunter2", "--token-file", "-v", "TOKEN=hunter2", "-token", "${TOKEN}"}
	if got, want := secret.MaskAll(words), []string{"./a", "--password", "…", "--token-file", "-v", "TOKEN=…", "-token", "${TOKEN}"}; !slices.Equal(got, want) {
		t.Errorf("MaskAll(%q) = %q, want %q", words, got, want)
	}
}
