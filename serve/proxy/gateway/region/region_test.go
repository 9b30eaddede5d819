package region_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/proxy/gateway/region"
	"github.com/tarehq/tare/serve/proxy/gateway/region/regiontest"
)

// write puts a database of addresses for documentation into a file.
func write(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "regions.mmdb")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var codes = map[string]string{
	"203.0.113.0/24": "DE", "203.0.113.128/25": "AT", "198.51.100.7/32": "US", "2001:db8::/32": "FR", "2001:db8:1::/48": "CH",
}

// TestRegion is the table of addresses and regions.
func TestRegion(t *testing.T) {
	db, err := region.Open(write(t, regiontest.Database(codes)), "country.iso_code")
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"203.0.113.7": "DE", "203.0.113.200": "AT", "203.0.114.1": "", "198.51.100.7": "US", "198.51.100.8": "",
		"2001:db8::1": "FR", "2001:db8:1::1": "CH", "2001:db9::1": "", "127.0.0.1": "",
	} {
		if got := db.Region(netip.MustParseAddr(at)); got != want {
			t.Errorf("%s: got %q, want %q", at, got, want)
		}
	}
	if got := db.Region(netip.Addr{}); got != "" {
		t.Errorf("no address: got %q", got)
	}
}

// TestOpen refuses what is no database, and fields that there are not.
func TestOpen(t *testing.T) {
	good := write(t, regiontest.Database(codes))
	for _, c := range []struct{ file, field, want string }{
		{write(t, []byte("country,code\n")), "country.iso_code", "invalid MaxMind DB file"},
		{write(t, regiontest.Database(codes)[:200]), "country.iso_code", "invalid MaxMind DB file"},
		{good + ".gone", "country.iso_code", "no such file"},
		{good, "country.code", "has the field country.code; the first one is map[country:map[iso_code:"},
		{good, "country", "has the field country;"},
		{good, "country.iso_code.0", "has the field"},
	} {
		if _, err := region.Open(c.file, c.field); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: got %v, want %q", c.field, c.file, err, c.want)
		}
	}
}

// FuzzOpen has a file with mistakes be an error, or answer.
func FuzzOpen(f *testing.F) {
	good := regiontest.Database(codes)
	f.Add(0, byte(0))
	for i := range 20 {
		f.Add(i*len(good)/20, byte(0xff))
	}
	path := filepath.Join(f.TempDir(), "regions.mmdb")
	f.Fuzz(func(t *testing.T, at int, is byte) {
		data := append([]byte{}, good...)
		if at < 0 || at >= len(data) {
			return
		}
		data[at] = is
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if db, err := region.Open(path, "country.iso_code"); err == nil {
			for _, a := range []string{"203.0.113.7", "2001:db8::1", "::"} {
				_ = fmt.Sprint(db.Region(netip.MustParseAddr(a)))
			}
		}
	})
}

// Example looks up two addresses of documentation in a small database.
func Example() {
	dir, err := os.MkdirTemp("", "region")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "countries.mmdb")
	if err := os.WriteFile(file, regiontest.Database(map[string]string{"203.0.113.0/24": "DE"}), 0o600); err != nil {
		panic(err)
	}
	db, err := region.Open(file, "country.iso_code")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%q %q\n", db.Region(netip.MustParseAddr("203.0.113.7")), db.Region(netip.MustParseAddr("192.0.2.1")))
	// Output: "DE" ""
}
