package router_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/sys"
)

// TestPublicWay runs tests again where the fields of http.Request that hold
// values cannot be used: the mux of Go 1.21 does not fill them.
func TestPublicWay(t *testing.T) {
	if !sys.FindPathFields().Known() {
		t.Skip("this is such a place")
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run", "^(TestEncodedPaths|TestCase|TestConstraints|TestMountKeepsValues|TestDeepPatterns|TestPublicWay)$")
	cmd.Env = append(os.Environ(), "GODEBUG=httpmuxgo121=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"--- PASS: TestEncodedPaths", "--- PASS: TestDeepPatterns", "--- SKIP: TestPublicWay"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("got no %q in\n%s", want, out)
		}
	}
}
