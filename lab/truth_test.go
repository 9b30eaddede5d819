package lab_test

import (
	"reflect"
	"testing"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
)

// What happened before the first answer does not count, and means are of the
// calls between the two.
func TestTruthSince(t *testing.T) {
	for _, c := range []struct {
		what, before, after string
		want                map[string]record.Truth
	}{
		{"CPU time of some calls", // 100 of 10 µs were taken before, and 50 of 20 µs since
			`{"spin":{"calls":1000,"cpu_ns":10e6,"cpu_calls":100}}`, `{"spin":{"calls":1500,"cpu_ns":20e6,"cpu_calls":150}}`,
			map[string]record.Truth{"spin": {Calls: 1, CPU: 20_000}}},
		{"CPU time of all calls", `{"spin":{"calls":1000,"cpu_ns":10e6}}`, `{"spin":{"calls":1500,"cpu_ns":25e6}}`,
			map[string]record.Truth{"spin": {Calls: 1, CPU: 30_000}}},
		{"bytes, twice a request", `{"alloc":{"calls":500,"cpu_ns":5e5,"bytes":512000}}`, `{"alloc":{"calls":1500,"cpu_ns":15e5,"bytes":1536000}}`,
			map[string]record.Truth{"alloc": {Calls: 2, CPU: 2000, Bytes: 2048}}},
		{"nothing but waiting", `{"block":{"calls":10,"ns":1e6}}`, `{"block":{"calls":510,"ns":501e6}}`,
			map[string]record.Truth{"block": {Calls: 1, Waiting: 1e6}}},
		{"waiting and working", `{"lock":{"calls":10,"ns":1e6,"cpu_ns":1e5,"wait_ns":4e5}}`, `{"lock":{"calls":510,"ns":11e6,"cpu_ns":26e5,"wait_ns":29e5}}`,
			map[string]record.Truth{"lock": {Calls: 1, CPU: 5000, Waiting: 5000}}},
		{"a part that began since", `{}`, `{"spin":{"calls":500,"cpu_ns":10e6}}`, map[string]record.Truth{"spin": {Calls: 1, CPU: 20_000}}},
		{"no calls", `{"spin":{"calls":7,"ns":1,"cpu_ns":1}}`, `{"spin":{"calls":7,"ns":1,"cpu_ns":1}}`, map[string]record.Truth{}},
	} {
		got, err := lab.TruthSince(c.before, c.after, 500)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.what, got, c.want)
		}
	}
}
