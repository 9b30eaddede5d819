package tare_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestServeBenchTables has .ci/bench-serve print records: pairs alone make a ratio, a round that
// failed is lost for its own servers only, and a bound is judged by the whole interval.
func TestServeBenchTables(t *testing.T) {
	dir := t.TempDir()
	records := map[string]string{
		"cpu-a": `# 2026-11-27T08:00Z load 0.31
0 get:64 serve 10.0 50000 20000 70 30000
0 get:64 fasthttp 12.5 50000 20000 70 30000
0 get:64 Reuse 9 50000 20000 70 30000
# 2026-11-27T09:00Z load 1.20
1 get:64 fasthttp 12.5 50000 20000 70 30000
1 get:64 serve 10.0 50000 20000 70 30000
1 get:64 Reuse -
2 get:64 serve -
2 get:64 fasthttp 13.0 50000 20000 70 30000
`,
		"latency-a": `0 rate - 20000 50000
0 rate - 22000 50000
0 half serve 200 400 0.4
0 half fasthttp 100 400 0.4
0 half Reuse -
1 half fasthttp 100 200 0.4
1 half serve 200 500 0.4
1 half Reuse 90 210 0.4
`,
		"memory-a": `0 get:5000 serve 40 9000 51200 5060 61440
0 get:5000 fasthttp 50 9000 81920 5060 92160
0 burst:10000 10000,Reuse=true 2.1
1 burst:10000 10000,Reuse=true 2.1
0 burst:50000 - -
`,
		"chain-a": `0 chain by=chain 1.9
0 chain by=echo5 1.7
1 chain by=chain 1.9
`,
		"growth-2-a": `0 get:64 serve 10 50000 20480 70 30000
1 get:64 serve 12 50000 20480 70 30000
0 get:8192 serve 22 50000 40960 8200 50000
0 count:0 serve -
0 count:1024 serve 20 50000 40960 70 50000
`,
	}
	writeFiles(t, dir, records)
	for name, want := range map[string][]string{
		"cpu-a": {
			"calls 2026-11-27T08:00Z at load 0.31, 2026-11-27T09:00Z at load 1.20\n",
			"| get:64 | serve to fasthttp | 10 | 12.5 | 0.800 (0.800 to 0.800) | ≤ 0.95 | reached | 2 | 1 |\n",
			"| get:64 | Reuse to fasthttp | 9 | 12.5 | 0.720 | | | 1 | 2 |\n",
			"| tls:64 | serve to fasthttp | | | nothing was measured | | | 0 | 0 |\n",
		},
		"latency-a": {
			"at 20000 to 22000/s, 40 to 44 % of what",
			"| half | serve to fasthttp | 200 | 100 | 2.000 (2.000 to 2.000) | ≤ 1 | missed | 2 | 0 |\n",
			"| half | Reuse to fasthttp | 210 | 200 | 1.050 | ≤ 1 | undecided | 1 | 1 |\n",
			"| half | serve to fasthttp | 450 | 300 | 1.581 (0.005 to 534.415) | ≤ 1 | undecided | 2 | 0 |\n",
		},
		"memory-a": {
			"| get:5000 | serve to fasthttp | 60 | 90 | 0.667 | ≤ 1 | undecided | 1 | 0 |\n",
			"| 10000,Reuse=true | 2.100 (2.100 to 2.100) | ≤ 2.5 | reached | 2 |\n",
			"| burst:50000: nothing was measured |",
		},
		"chain-a": {
			"| by=chain | 1.900 (1.900 to 1.900) | ≤ 2 | reached | 2 |\n",
			"| by=echo5 | 1.700 | | | 1 |\n",
		},
		"growth-2-a": {
			"CPUs of the server: 2\n",
			"| get:64 | – | 11 [10, 12] | – | – | – | 2 |\n",
			"| get:8192 | – | 22 [22, 22] ×2.00 | – | – | – | 1 |\n",
			"| count:1024 | – | 20 [20, 20] | – | – | – | 1 |\n",
			"| get:8192 | – | 40 [40, 40] ×2.00 | – | – | – | 1 |\n",
		},
	} {
		out, err := exec.CommandContext(t.Context(), "bash", ".ci/bench-serve", "show", filepath.Join(dir, name)).CombinedOutput()
		if err != nil {
			t.Errorf("show %s: %v: %s", name, err, out)
		}
		for _, line := range want {
			if !strings.Contains(string(out), line) {
				t.Errorf("show %s: got\n%swant a part %q", name, out, line)
			}
		}
	}
}

// TestServeBenchUsage has .ci/bench-serve refuse what it cannot do, before it builds anything.
func TestServeBenchUsage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "bash .ci/bench-serve goals"},
		{[]string{"goals", "speed"}, "bash .ci/bench-serve goals"},
		{[]string{"goals", "--budget", "5x"}, "bash .ci/bench-serve goals"},
		{[]string{"growth", "--budget"}, "bash .ci/bench-serve goals"},
		{[]string{"pair", "a", "b"}, "bash .ci/bench-serve goals"},
		{[]string{"show", "cpu-nothing"}, "cpu-nothing is no record"},
		{[]string{"show", "go.mod"}, "go.mod is no record"},
	} {
		cmd := exec.CommandContext(t.Context(), "bash", append([]string{".ci/bench-serve"}, tt.args...)...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), tt.want) {
			t.Errorf("bench-serve %q: got %v, %s; want status 2 and %q", tt.args, err, out, tt.want)
		}
	}
}
