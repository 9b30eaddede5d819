// Command dispatch answers behind hops that do nothing but call the next: through
// an interface value, as http.Handler is one, or through a pointer of a known
// type.
//
// calls.pgo is a CPU profile of this program, taken by its control socket while
// the loop in its process ran with --by interface. A study's arm that is built
// with -pgo=arms/dispatch/calls.pgo shows what the compiler makes of it: a
// comparison with the type seen most, and its code in place of the call.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/layers/plan"
)

func main() {
	by := flag.String("by", "interface", "what a hop `knows` of the next: interface or type")
	hops := flag.Int("hops", 16, "`number` of hops before the answer, at most 1000")
	flag.Parse()
	h, err := handler(*by, *hops)
	if err != nil {
		fmt.Fprintf(os.Stderr, "dispatch: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h})
}

func handler(by string, hops int) (http.Handler, error) {
	if hops < 1 || hops > 1000 {
		return nil, fmt.Errorf("%d hops: want 1 to 1000", hops)
	}
	switch by {
	case "interface":
		var h http.Handler = &end{answer: plan.NewAnswer()}
		for range hops {
			h = &open{next: h}
		}
		return h, nil
	case "type":
		h := &closed{end: end{answer: plan.NewAnswer()}}
		for range hops - 1 {
			h = &closed{next: h}
		}
		return h, nil
	}
	return nil, fmt.Errorf("by %q: want interface or type", by)
}

// end answers.
type end struct{ answer *plan.Answer }

func (e *end) ServeHTTP(w http.ResponseWriter, _ *http.Request) { e.answer.Write(w) }

// open knows of the next hop that it is a handler: the call goes through the
// table of methods that the interface value points to.
type open struct{ next http.Handler }

func (o *open) ServeHTTP(w http.ResponseWriter, r *http.Request) { o.next.ServeHTTP(w, r) }

// closed knows the type of the next hop: the call names the function.
type closed struct {
	next *closed // nil: the last one
	end  end
}

func (c *closed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.next == nil {
		c.end.ServeHTTP(w, r)
		return
	}
	c.next.ServeHTTP(w, r)
}
