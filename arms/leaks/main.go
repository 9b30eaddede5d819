// Command leaks answers with the help of a goroutine, of an upstream or of a
// buffer, and leaves something behind or does not.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"

	"github.com/tarehq/tare/arms/arm"
)

func main() {
	kind := flag.String("leak", "none", "what each request `leaves` behind, or how it is done well: "+names)
	flag.Parse()
	h, err := handler(*kind)
	if err != nil {
		fmt.Fprintf(os.Stderr, "leaks: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h})
}

const names = "none, select, channel, client, shared-client, escape or stack"

func handler(kind string) (http.Handler, error) {
	switch kind {
	case "none":
		return http.HandlerFunc(ended), nil
	case "select":
		return http.HandlerFunc(endless), nil
	case "channel":
		return http.HandlerFunc(unread), nil
	case "client", "shared-client":
		return newCaller(kind == "shared-client")
	case "escape":
		return http.HandlerFunc(escapes), nil
	case "stack":
		return http.HandlerFunc(stays), nil
	}
	return nil, fmt.Errorf("leak %q: want %s", kind, names)
}

const body = `{"stock":7}`

// reply answers with what was found out, which is always the same.
func reply(w http.ResponseWriter, stock string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write([]byte(stock)) // fails when the client has gone
}
