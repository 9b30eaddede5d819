package cost_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost"
)

const (
	dispatch = "example.org/web/v2.(*Router).dispatch@/mod/example.org/web/v2@v2.1.0/router.go:9"
	step     = "example.org/web/v2.(*Chain).Step@/mod/example.org/web/v2@v2.1.0/chain.go:5"
	register = "example.org/web/v2.Register[...].func1@/mod/example.org/web/v2@v2.1.0/register.go:5"
	app      = "main.(*app).ServeHTTP@/src/app.go:10"
	next     = "main.(*call).next@/src/call.go:5"
	visit    = "main.visit@/src/tree.go:5"
)

// TestChains finds the links of chains that no list has by the shape of stacks, and
// nothing in what looks a little like one. Each line has the stacks of a profile, and the
// rows of their innermost owners.
func TestChains(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stacks [][]string // inside the server
		want   string
	}{
		{"a framework's", [][]string{
			{call, dispatch, step, "main.spin.func1@/src/spin.go:3", step, "main.lock.func2@/src/lock.go:3", step, users},
		}, "src.users"},
		{"a framework's own work between two links", [][]string{
			{call, dispatch, step, "main.spin.func1@/src/spin.go:3", step, "main.lock.func2@/src/lock.go:3", register, users},
			{call, dispatch, step, "main.spin.func1@/src/spin.go:3", step, "main.lock.func2@/src/lock.go:3", register, "example.org/web/v2.encode@/mod/example.org/web/v2@v2.1.0/encode.go:5"},
			{call, dispatch, step, "main.spin.func1@/src/spin.go:3", "example.org/web/v2.encode@/mod/example.org/web/v2@v2.1.0/encode.go:5"},
		}, "src.users web src.spin"},
		{"a framework's own work after the last link that was seen", [][]string{
			{call, dispatch, step, "main.spin.func1@/src/spin.go:3", step, "main.lock.func2@/src/lock.go:3"},
			{call, dispatch, step, "main.spin.func1@/src/spin.go:3", step, "main.lock.func2@/src/lock.go:3", register, "example.org/web/v2.encode@/mod/example.org/web/v2@v2.1.0/encode.go:5"},
		}, "src.lock web"},
		{"that comes once", [][]string{{call, dispatch, "main.show@/src/show.go:3"}}, "src.show"},
		{"a library's middleware with a function of the program's", [][]string{
			{call, dispatch, call, users},
			{call, dispatch, call, users},
			{call, dispatch, "main.allowed@/src/cors.go:3"},
		}, "src.users src.users web.(*Router).dispatch"},
		{"home-made", [][]string{
			{app, next, "main.spin.func1@/src/spin.go:3", next, "main.lock.func2@/src/lock.go:3"},
			{app, next, "main.spin.func1@/src/spin.go:3", "main.burn@/src/burn.go:3"},
		}, "src.lock src.spin"},
		{"a tree that is walked", [][]string{
			{call, users, visit, "main.(*list).walk@/src/tree.go:9", visit, "main.(*text).walk@/src/tree.go:20"},
			{call, users, visit, "main.(*list).walk@/src/tree.go:9", visit, "main.(*list).walk@/src/tree.go:9"},
		}, "src.users src.users"},
		{"a part of the requests", [][]string{
			{call, users, visit, "main.(*list).walk@/src/tree.go:9", visit, "main.(*text).walk@/src/tree.go:20"},
			{call, users}, {call, users},
		}, "src.users src.users src.users"},
		{"tried again", [][]string{
			{call, users, "main.retry@/src/retry.go:5", "main.users.func1@/src/main.go:42", "main.retry@/src/retry.go:5", "main.users.func1.1@/src/main.go:43"},
		}, "src.users"},
		{"literals that call each other", [][]string{
			{call, auth, "main.main.Zip.func4@/src/zip.go:4", "main.main.Log.func5@/src/log.go:5"},
			{call, auth, "main.main.Zip.func4@/src/zip.go:4"},
		}, "src.Log src.Zip"},
		{"what a middleware was configured with", [][]string{{call, auth, "main.main.newKey.func4@/src/key.go:4"}}, "auth.Auth"},
		{"methods of one name", [][]string{
			{app, "main.(*log).Handle@/src/log.go:5", "main.(*zip).Handle@/src/zip.go:5", "main.(*shop).Handle@/src/shop.go:5"},
		}, "src.(*shop).Handle"},
		{"of readers", [][]string{
			{app, "main.(*limit).Read@/src/log.go:5", "main.(*count).Read@/src/zip.go:5", "main.(*file).Read@/src/shop.go:5"},
		}, "src.(*app).ServeHTTP"},
		{"within a handler", [][]string{
			{call, users, "main.(*cache).Find@/src/log.go:5", "main.(*trace).Find@/src/zip.go:5", "main.(*store).Find@/src/shop.go:5"},
		}, "src.users"},
	} {
		var profile []cost.Stack
		for _, frames := range tc.stacks {
			profile = append(profile, stack(1, append([]string{"runtime.goexit", conn, server}, frames...)...))
		}
		rules := cost.Learn(profile)
		var got []string
		for _, s := range profile {
			owner, _ := rules.Charge(s.Frames)
			got = append(got, owner.Name)
		}
		if joined := strings.Join(got, " "); joined != tc.want {
			t.Errorf("%s: charged to %s, want %s", tc.name, joined, tc.want)
		}
	}
}

// TestUnanswered has a handler behind a middleware of echo a row of its own, though it was
// not seen to answer, and says that it was guessed.
func TestUnanswered(t *testing.T) {
	in := []string{"runtime.goexit", conn, server, echo5 + "(*Echo).ServeHTTP", echo5 + "(*Echo).serveHTTP", "main.main.Log.func1.1@/src/log.go:5"}
	profile := []cost.Stack{stack(10, in...), stack(50, append(slices.Clone(in), users)...)}
	b := cost.NewBill(profile, nil, cost.Window{})
	if len(b.Items) != 3 || b.Items[0].Owner != "src.users" || b.Items[0].Kind != "handler" || b.Items[1].Self != 10 {
		t.Errorf("got %+v, want a handler of 50 and a middleware of 10", b.Items)
	}
	if len(b.Warnings) != 1 || !strings.Contains(b.Warnings[0], "src.users was taken for the handler behind src.Log") {
		t.Errorf("warnings: got %q, want one of the guess", b.Warnings)
	}
	small := []cost.Stack{stack(50, in...), stack(10, append(slices.Clone(in), users)...)}
	if b := cost.NewBill(small, nil, cost.Window{}); len(b.Items) != 2 || len(b.Warnings) != 0 {
		t.Errorf("of what a middleware hardly calls: got %+v, %q, want no handler", b.Items, b.Warnings)
	}
}

// TestLumped warns of a handler in which several functions of the program's hold most of
// the CPU, and of no other.
func TestLumped(t *testing.T) {
	in := []string{"runtime.goexit", conn, server, call, users}
	of := func(value float64, more ...string) cost.Stack {
		return stack(value, append(slices.Clone(in), more...)...)
	}
	parts := []cost.Stack{of(40, "main.spin@/src/s.go:1", "runtime.mallocgc"), of(30, "main.zip@/src/z.go:1"), of(20, "main.render@/src/r.go:1")}
	engine := stack(100, "runtime.goexit", conn, "net/http.(*conn).readRequest")
	for _, tc := range []struct {
		name    string
		profile []cost.Stack
		want    string
	}{
		{"three parts", parts, "the handler src.users holds 100 % of the CPU, mostly in src.spin (44 %), src.zip (33 %), src.render (22 %)"},
		{"two parts", parts[:2], ""},
		{"little of the CPU", append(slices.Clone(parts), engine), ""},
		{"a middleware", append(slices.Clone(parts), of(1, call, "main.inner@/src/i.go:1")), ""},
	} {
		got := strings.Join(cost.NewBill(tc.profile, nil, cost.Window{}).Warnings, "; ")
		if !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestSameNames has rows of one name in two modules distinguished.
func TestSameNames(t *testing.T) {
	in := []string{"runtime.goexit", conn, server, call}
	first, second := "a.org/x/mw.Log.func1@/mod/a.org/x@v1.0.0/mw/log.go:5", "b.org/y/mw.Log.func1@/mod/b.org/y@v1.0.0/mw/log.go:5"
	b := cost.NewBill([]cost.Stack{
		stack(5, append(in, first)...), stack(3, append(in, first, call, second)...), stack(1, append(in, first, call, second, call, users)...),
	}, nil, cost.Window{})
	var names []string
	for _, it := range b.Items {
		names = append(names, it.Owner)
	}
	if got, want := strings.Join(names, " "), "x/mw.Log y/mw.Log src.users"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestEnclosed has kratos' middlewares, which it runs inside the handler, stay what they
// are on single stacks.
func TestEnclosed(t *testing.T) {
	const kratos = "github.com/go-kratos/kratos/v2/transport/http."
	s := stack(1, "runtime.goexit", conn, server, kratos+"(*Server).ServeHTTP", call, kratos+"(*Router).Handle.func1", users, "main.main.Auth.func2.1@/src/mw.go:3")
	var got []string
	for _, o := range cost.Learn([]cost.Stack{s}).Around(s.Frames) {
		got = append(got, o.Kind.String()+" "+o.Name)
	}
	if joined := strings.Join(got, ", "); joined != "router kratos, router kratos, handler src.users, middleware src.Auth" {
		t.Errorf("got %s", joined)
	}
}
