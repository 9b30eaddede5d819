package load_test

import (
	"net"
	"testing"

	"github.com/tarehq/tare/load"
)

// Of requests that begin together each begins when its turn has come: what it takes to
// open the connections before is in none of its times.
func TestBegunTogether(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const n = 50
	starts, err := load.Begun(t.Context(), load.Options{Engine: load.Epoll, Targets: []load.Target{{URL: "http://" + l.Addr().String()}},
		Connections: n, Threads: 1})
	if err != nil || len(starts) != n {
		t.Fatalf("%d requests began, %v; want %d", len(starts), err, n)
	}
	for i := 1; i < n; i++ {
		if starts[i] <= starts[i-1] {
			t.Errorf("request %d began %v after the one before, want later", i, starts[i]-starts[i-1])
		}
	}
}
