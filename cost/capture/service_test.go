package capture

import (
	"testing"
)

// TestParseService has each way to name a service in one word.
func TestParseService(t *testing.T) {
	for text, want := range map[string]Service{
		"4711":                 {PID: 4711},
		"pid:4711":             {PID: 4711},
		"cgroup:shop.slice":    {Cgroup: "shop.slice"},
		"container:3f2a":       {Container: "3f2a"},
		"localhost:6060":       {URL: "localhost:6060"},
		"http://shop/profiles": {URL: "http://shop/profiles"},
	} {
		if got, err := ParseService(text); got != want || err != nil {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "pid:", "pid:shop", "pid:-1"} {
		if got, err := ParseService(text); err == nil {
			t.Errorf("%s: got %+v, want an error", text, got)
		}
	}
}
