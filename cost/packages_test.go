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

// A literal's package is known by its folder, and by the module's root where another
// function shows that.
func TestNamePackages(t *testing.T) {
	middleware := cost.Frame{Func: "main.main.Check.func1", File: "/home/u/shop/auth/auth.go", Line: 20, Decl: 12}
	server := []cost.Frame{
		{Func: "net/http.HandlerFunc.ServeHTTP", File: "/go/src/net/http/server.go", Line: 2322},
		{Func: "net/http.serverHandler.ServeHTTP", File: "/go/src/net/http/server.go", Line: 3340},
		{Func: "net/http.(*conn).serve", File: "/go/src/net/http/server.go", Line: 2109},
	}
	for _, c := range []struct{ fn, file, want string }{
		{"main.run", "/home/u/shop/cmd/api/main.go", "example.com/shop/auth"},
		{"example.com/shop/db.Find", "/home/u/shop/db/db.go", "example.com/shop/auth"},
		{"example.com/shopping/db.Find", "/home/u/shopping/db/db.go", "/home/u/shop/auth"},
		{"main.run", "/elsewhere/cmd/api/main.go", "/home/u/shop/auth"},
		{"main.run", "/home/u/shop/main.go", "/home/u/shop/auth"},
	} {
		inner := cost.Frame{Func: c.fn, File: c.file, Line: 9, Decl: 8}
		b := cost.NewBill([]cost.Stack{{Value: 1, Count: 1, Frames: append([]cost.Frame{inner, middleware}, server...)}}, nil, cost.Window{Requests: 1})
		b.NamePackages("example.com/shop", "example.com/shop/cmd/api")
		if len(b.Items) != 1 || b.Items[0].Package != c.want {
			t.Errorf("beside %s in %s: got %+v, want package %q", c.fn, c.file, b.Items, c.want)
		}
	}
}
