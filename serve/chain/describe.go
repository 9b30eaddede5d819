package chain

import (
	"fmt"
	"net/http"
	"strings"
)

// Describe returns a picture of a chain around a handler: a line for each
// layer, outermost first, further in the further it is, with its condition where
// that is asked for each request; then the handler; then the layers that were
// left out and why. Of a handler that is no chain it gives the name.
func Describe(h http.Handler) string {
	var b strings.Builder
	c, ok := h.(*Handler)
	if !ok {
		return nameOfHandler(h) + "\n"
	}
	depth := 0
	line := func(text string) {
		if depth > 0 {
			b.WriteString(strings.Repeat("  ", depth-1) + "└─ ")
		}
		b.WriteString(text + "\n")
		depth++
	}
	for _, l := range c.layers {
		switch l.decided {
		case yes:
			line(l.Name)
		case unknown:
			line(fmt.Sprintf("%s (when %v)", l.Name, l.When))
		}
	}
	line(nameOfHandler(c.final))
	for _, l := range c.layers {
		if l.decided == no {
			fmt.Fprintf(&b, "excluded: %s (when %v)\n", l.Name, l.When)
		}
	}
	return b.String()
}
