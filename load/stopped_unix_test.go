//go:build unix

package load_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A run whose process is stopped until after its end says so: in the closed loop
// nothing else shows that the server was not at fault.
func TestStopped(t *testing.T) {
	o, _ := serve(t, 0, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	o.Connections, o.Duration = 2, 500*time.Millisecond
	for _, stop := range []bool{false, true} {
		other := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf("sleep 0.2; kill -STOP %[1]d; sleep 1; kill -CONT %[1]d", os.Getpid()))
		if stop {
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
		}
		r := run(t, context.Background(), o)
		if told := strings.Contains(fmt.Sprint(r.Warnings), "was stopped during the run"); r.Stopped != stop || told != stop || stop && !r.Bound {
			t.Errorf("stopped %t: got stopped %t, bound %t, warnings %q", stop, r.Stopped, r.Bound, r.Warnings)
		}
		if stop {
			if err := other.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
