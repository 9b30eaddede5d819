package config

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/tarehq/tare/serve/middleware/clientaddr"
	"github.com/tarehq/tare/serve/proxy/internal/tree"
)

// Regions say where clients' regions are looked up. The zero value: nowhere.
type Regions struct {
	Database string // a file of MaxMind's format
	Field    string // of its records, such as country.iso_code
}

// RegionFinder tells which region an address is in; the empty one if none is known. It is
// safe for concurrent use.
type RegionFinder interface{ Region(netip.Addr) string }

// defaultField has the country in MaxMind's databases and in many others.
const defaultField = "country.iso_code"

func readRegions(v tree.Value) Regions {
	k := v.Object("database!", "field")
	r := Regions{
		Database: k["database"].Text("a file such as GeoLite2-Country.mmdb", tree.NotEmpty),
		Field: k["field"].Text("names with dots between, such as continent.code or subdivisions.0.iso_code", func(s string) bool {
			return !slices.Contains(strings.Split(s, "."), "")
		}),
	}
	if !k["field"].Is {
		r.Field = defaultField
	}
	return r
}

// readRegionNames returns the regions that a route is for.
func readRegionNames(v tree.Value) []string {
	names := v.Texts("a region as the database has it, such as DE", tree.NotEmpty)
	if v.Is && len(names) == 0 {
		v.Wrong("want at least one region, or no key region")
	}
	return names
}

// OpenRegions opens the file's database of regions; nil if it names none.
func (f *File) OpenRegions(open func(Regions) (RegionFinder, error)) (RegionFinder, error) {
	if f.Regions.Database == "" {
		return nil, nil
	}
	err := errors.New("this program reads no such databases")
	if open != nil {
		var find RegionFinder
		if find, err = open(f.Regions); err == nil {
			return find, nil
		}
	}
	return nil, &Problem{Path: "regions.database", Text: err.Error()}
}

// regionOf is the region of who has sent a request.
func regionOf(find RegionFinder, r *http.Request) string {
	if find == nil {
		return ""
	}
	return find.Region(clientaddr.From(r))
}
