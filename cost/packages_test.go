package cost_test

import (
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
)

// Two modules' middlewares of one name differ by their packages, whichever way the
// program was built, and also where a literal was inlined into main.
func TestItemsNamePackages(t *testing.T) {
	stack := func(fn, file string) cost.Stack {
		return cost.Stack{Value: float64(time.Millisecond), Count: 1, Frames: []cost.Frame{
			{Func: fn, File: file, Line: 20, Decl: 12},
			{Func: "net/http.HandlerFunc.ServeHTTP", File: "/go/src/net/http/server.go", Line: 2322},
			{Func: "net/http.serverHandler.ServeHTTP", File: "/go/src/net/http/server.go", Line: 3340},
			{Func: "net/http.(*conn).serve", File: "/go/src/net/http/server.go", Line: 2109},
		}}
	}
	for _, c := range []struct{ fn, file, owner, want string }{
		{"example.com/one/auth.Check", "/home/u/one/auth/auth.go", "auth.Check", "example.com/one/auth"},
		{"example.com/two/auth.Check", "/home/u/two/auth/auth.go", "auth.Check", "example.com/two/auth"},
		{"main.main.Check.func1", "/root/go/pkg/mod/example.com/three@v1.2.3/auth/auth.go", "auth.Check", "example.com/three/auth"},
		{"main.main.Check.func1", "example.com/four/v2@v2.0.1/auth.go", "four.Check", "example.com/four/v2"},
		{"main.main.Check.func1", "/home/u/five/auth/auth.go", "auth.Check", "/home/u/five/auth"},
	} {
		b := cost.NewBill([]cost.Stack{stack(c.fn, c.file)}, nil, cost.Window{Requests: 1})
		if len(b.Items) != 1 || b.Items[0].Owner != c.owner || b.Items[0].Package != c.want {
			t.Errorf("%s in %s: got %+v, want owner %q of package %q", c.fn, c.file, b.Items, c.owner, c.want)
		}
	}
}
