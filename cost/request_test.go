package cost_test

import (
	"testing"

	"github.com/tarehq/tare/cost"
)

func TestInRequest(t *testing.T) {
	conn := cost.Frame{Func: "net/http.(*conn).serve"}
	server := cost.Frame{Func: "net/http.serverHandler.ServeHTTP"}
	handler := cost.Frame{Func: "example.org/shop.(*cart).ServeHTTP", File: "cart.go", Decl: 7}
	for _, tc := range []struct {
		name   string
		frames []cost.Frame
		want   bool
	}{
		{"none", nil, false},
		{"a connection", []cost.Frame{{Func: "net.(*conn).Read"}, conn}, false},
		{"a handler", []cost.Frame{{Func: "sync.(*Mutex).Lock"}, handler, server, conn}, true},
		{"the engine, called by a handler", []cost.Frame{{Func: "net/http.(*response).Write"}, handler, server, conn}, true},
		{"a goroutine of its own", []cost.Frame{{Func: "time.Sleep"}, {Func: "main.main.func1"}}, false},
	} {
		if got := cost.InRequest(tc.frames); got != tc.want {
			t.Errorf("%s: InRequest = %t, want %t", tc.name, got, tc.want)
		}
	}
}

func TestFrameName(t *testing.T) {
	for _, tc := range []struct {
		frame cost.Frame
		want  string
	}{
		{cost.Frame{Func: "example.org/shop.(*cart).ServeHTTP", File: "/src/shop/cart.go"}, "shop.(*cart).ServeHTTP"},
		{cost.Frame{Func: "main.main.Spin.func2", File: "/src/layers/spin.go"}, "layers.Spin"},
		{cost.Frame{Func: "main.main.Timed[...].func2", File: "/src/layers/timed.go"}, "layers.Timed"},
		{cost.Frame{Func: "example.org/shop.Timed[...].func1"}, "shop.Timed"},
		{cost.Frame{Func: "example.org/shop.(*Cache[...]).Wrap.func1.2", File: "/src/shop/cache.go"}, "shop.(*Cache).Wrap"},
		{cost.Frame{Func: "main.main.(*Limiter).Wrap.func2", File: "/src/shop/wrap.go"}, "shop.(*Limiter).Wrap"},
		{cost.Frame{Func: "main.main.(*Logger).Wrap.func1", File: "/src/shop/wrap.go"}, "shop.(*Logger).Wrap"},
		{cost.Frame{Func: "gopkg.in/shop%2ev3.(*cart).ServeHTTP", File: "/mod/gopkg.in/shop.v3@v3.0.1/cart.go"}, "shop.v3.(*cart).ServeHTTP"},
		{cost.Frame{Func: "gopkg.in/shop%2ev3.Auth.func1", File: "/mod/gopkg.in/shop.v3@v3.0.1/auth.go"}, "shop.v3.Auth"},
		{cost.Frame{Func: "gopkg.in/shop%2ev3.Auth.func1"}, "shop.v3.Auth"},
		{cost.Frame{Func: "main.run", File: "/src/shop/main.go"}, "shop.run"},
	} {
		if got := tc.frame.Name(); got != tc.want {
			t.Errorf("%s in %s: got %q, want %q", tc.frame.Func, tc.frame.File, got, tc.want)
		}
	}
}

func TestRPC(t *testing.T) {
	for _, tc := range []struct {
		function, want string
		ok             bool
	}{
		{"example.org/shop/pb._Cart_Add_Handler", "Cart_Add", true},
		{"example.org/shop/pb._Cart_Add_Handler.func1", "Cart_Add", true},
		{"example.org/shop/pb._Cart_Add_2_Handler", "Cart_Add_2", true},
		{"main._Cart_Add_Handler", "Cart_Add", true},
		{"example.org/shop/pb.RegisterCartHTTPServer._Cart_Add0_HTTP_Handler.func2.1", "Cart_Add0_HTTP", true},
		{"example.org/shop/pb.Cart_Add_Handler", "", false},
		{"example.org/shop/pb._Cart_Add", "", false},
		{"example.org/shop.(*cart).Add", "", false},
		{"memmove", "", false},
	} {
		if got, ok := cost.RPC(tc.function); ok != tc.ok || ok && got != tc.want {
			t.Errorf("%s: got %q, %t, want %q, %t", tc.function, got, ok, tc.want, tc.ok)
		}
	}
}
