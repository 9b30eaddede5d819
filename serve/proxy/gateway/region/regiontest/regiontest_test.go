package regiontest_test

import (
	"fmt"
	"net/netip"

	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/tarehq/tare/serve/proxy/gateway/region/regiontest"
)

// Example has a library for such databases read one.
func Example() {
	db, err := maxminddb.OpenBytes(regiontest.Database(map[string]string{"203.0.113.0/24": "DE", "203.0.113.64/26": "AT"}))
	if err != nil {
		panic(err)
	}
	if err := db.Verify(); err != nil {
		panic(err)
	}
	for r := range db.Networks() {
		var code string
		if err := r.DecodePath(&code, "country", "iso_code"); err != nil {
			panic(err)
		}
		fmt.Println(r.Prefix(), code)
	}
	fmt.Println(db.Lookup(netip.MustParseAddr("192.0.2.1")).Found())
	// Output:
	// 203.0.113.0/26 DE
	// 203.0.113.64/26 AT
	// 203.0.113.128/25 DE
	// false
}
