//go:build unix

package variant

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// conformance is what the reference server is asked: all that a server of net/http can do,
// by two of the six compressions.
const conformance = `features:
  versions: [HTTP_VERSION_1, HTTP_VERSION_2]
  protocols: [PROTOCOL_CONNECT, PROTOCOL_GRPC, PROTOCOL_GRPC_WEB]
  codecs: [CODEC_PROTO, CODEC_JSON]
  compressions: [COMPRESSION_IDENTITY, COMPRESSION_GZIP]
  supportsTlsClientCerts: true
  supportsHalfDuplexBidiOverHttp1: true
`

// TestConformance runs the conformance suite of the Connect protocol, gRPC and gRPC-Web
// against its reference server, built with serve.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: runs thousands of cases")
	}
	t.Parallel()
	dir, work := copyModule(t, "connectrpc.com/conformance@v1.0.7"), t.TempDir()
	server := filepath.Join(dir, "cmd", "referenceserver")
	b, err := Apply(t.Context(), []Variant{{Kind: Serve}}, Options{Dir: server, Work: work, ServeModule: "../../serve"})
	if err != nil {
		t.Fatal(err)
	}
	runTool(t, server, b.Env, "go", append(append([]string{"build", "-o", work}, b.Flags...), ".")...)
	runTool(t, dir, moduleEnv, "go", "build", "-o", work, "./cmd/connectconformance")
	config := filepath.Join(work, "config.yaml")
	if err := os.WriteFile(config, []byte(conformance), 0o600); err != nil {
		t.Fatal(err)
	}
	out := runTool(t, dir, nil, filepath.Join(work, "connectconformance"), "--conf", config, "--mode", "server", "--", filepath.Join(work, "referenceserver"))
	counts := regexp.MustCompile(`(\d+) passed, (\d+) failed`).FindStringSubmatch(out)
	if counts == nil {
		t.Fatalf("no counts in the output:\n%.4000s", out)
	}
	t.Logf("%s cases passed, %s failed", counts[1], counts[2])
	if passed, _ := strconv.Atoi(counts[1]); passed < 1000 || counts[2] != "0" {
		t.Errorf("got %s, want more than 1000 passed and 0 failed:\n%.4000s", counts[0], out)
	}
}

// runTool runs a program to its end or for suiteTime, and returns what it printed.
func runTool(t *testing.T, dir string, env []string, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), suiteTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, slices.Concat(os.Environ(), env)
	endWithChildren(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%.4000s", program, err, out)
	}
	return string(out)
}

// endWithChildren has a command end, when its context does, with all that it started.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second // a child may hold the output open
}
