// Command locality answers behind nodes that call one another in turn, which lie
// in memory in the order of the calls or all over the place.
//
//	GET /few   16 nodes, as many as a long chain of middleware has
//	GET /many  16,384 nodes, 1 MiB, more than the first caches hold
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/layers/plan"
)

// The numbers of nodes.
const (
	few  = 16
	many = 1 << 14
)

func main() {
	order := flag.String("order", "calls", "`order` of the nodes in memory: calls or shuffled")
	flag.Parse()
	h, err := routes(*order)
	if err != nil {
		fmt.Fprintf(os.Stderr, "locality: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h})
}

// routes lays out both chains. The same nodes lie in the same memory in either
// order: all that differs is which calls which.
func routes(order string) (http.Handler, error) {
	mux := http.NewServeMux()
	for path, n := range map[string]int{"/few": few, "/many": many} {
		// The few are spread over as much memory as the many: in a program, what
		// was allocated at other times lies between them.
		memory := make([]node, many)
		var places []int
		switch order {
		case "calls":
			places = inOrder(n)
		case "shuffled":
			places = shuffled(n)
		default:
			return nil, fmt.Errorf("order %q: want calls or shuffled", order)
		}
		c := &chain{first: link(memory, places), sum: sum(n), answer: plan.NewAnswer()}
		mux.Handle("GET "+path, c)
	}
	return mux, nil
}

// chain answers when all of its nodes have been called.
type chain struct {
	first  *node
	sum    uint64 // of all weights
	answer *plan.Answer
}

func (c *chain) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var got uint64
	for n := c.first; n != nil; n = n.next {
		got = n.call(got)
	}
	if got != c.sum {
		http.Error(w, "nodes are missing", http.StatusInternalServerError)
		return
	}
	c.answer.Write(w)
}
