package keyfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/proxy/internal/keyfile"
)

// TestReadTrust is the table of what is wrong with files of a trust.
func TestReadTrust(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	if err := os.WriteFile(none, []byte("none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ roots, certificate, key, want string }{
		{"", "", "", ""},
		{none, "", "", none + " has no certificate in PEM"},
		{dir, "", "", dir + " is not a file"},
		{"", none, "", "a certificate and its key go together"},
		{"", "", none, "a certificate and its key go together"},
		{"", none, none, none + " and " + none + ": "},
	} {
		_, err := keyfile.ReadTrust("x.example", c.roots, c.certificate, c.key)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}
