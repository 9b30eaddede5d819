package inside_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	_ "net/http/pprof" // on http.DefaultServeMux
	"strings"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/inside"
)

func ExampleExposed() {
	ctx := context.Background()
	srv := httptest.NewServer(http.DefaultServeMux)
	defer srv.Close()
	proc, err := arm.Start(ctx, arm.Program{URL: srv.URL}, arm.StartOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	profiles := inside.Exposed(ctx, proc)
	fmt.Println(strings.TrimPrefix(profiles.String(), srv.URL))
	// Output: /debug/pprof/
}
