// Package region finds the region of an IP address in a database of MaxMind's format,
// such as GeoLite2 Country or those of DB-IP and IPinfo.
//
// The file is read whole, so that another one may take its place at any time: a country
// database takes some 10 MB, one of cities some 60 MB.
package region

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/oschwald/maxminddb-golang/v2"
)

// Database is a database of regions. It is safe for concurrent use.
type Database struct {
	reader *maxminddb.Reader
	path   []any // of the field in records
}

// mostLooked bounds how many networks are looked at for a field.
const mostLooked = 100_000

// Open reads a file. The field is a record's part that is the region, names with dots between
// and places in lists, from 0 on: country.iso_code, continent.code or
// subdivisions.0.iso_code. A database whose first records lack it is an error.
func Open(file, field string) (*Database, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	reader, err := maxminddb.OpenBytes(data)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	db := &Database{reader: reader}
	for name := range strings.SplitSeq(field, ".") {
		if i, err := strconv.Atoi(name); err == nil {
			db.path = append(db.path, i)
		} else {
			db.path = append(db.path, name)
		}
	}
	return db, db.look(file, field)
}

// look returns an error if no record has the field.
func (db *Database) look(file, field string) error {
	n := 0
	var first any
	// Those without records count, too: a broken tree can have any number of them.
	for r := range db.reader.Networks(maxminddb.IncludeNetworksWithoutData()) {
		if err := r.Err(); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if db.value(r) != "" {
			return nil
		}
		if first == nil && r.Found() {
			_ = r.Decode(&first) // only to tell what there is
		}
		if n++; n == mostLooked {
			break
		}
	}
	return fmt.Errorf("reading %s: no record has the field %s; the first one is %v", file, field, first)
}

// Region returns the region that an address is in; empty if the database does not say.
func (db *Database) Region(at netip.Addr) string { return db.value(db.reader.Lookup(at)) }

// value returns a record's field; numbers as text.
func (db *Database) value(r maxminddb.Result) string {
	var v any
	if err := r.DecodePath(&v, db.path...); err != nil || v == nil {
		return "" // an IPv6 address in a database of IPv4, or a broken record
	}
	switch v.(type) {
	case map[string]any, []any:
		return "" // the field goes on
	}
	return fmt.Sprint(v)
}
