package lab_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// A study of what is already running: the same server twice, so that whatever
// difference shows is noise.
func ExampleRun() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello")
	}))
	defer server.Close()
	s, err := study.Parse("same.yaml", fmt.Appendf(nil, `
name: same
aa: true
arms: [{name: a, url: %[1]q}, {name: b, url: %[1]q}]
control: a
workloads:
  - {name: slow, schedule: constant, rate: 100/s, targets: [{path: /, verify: {contains: hello}}]}
primary: {metric: response_p50, workload: slow}
trial: {warm_up: 10ms, measure: 100ms, slice: 10ms}
`, server.URL))
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	run, err := lab.Run(context.Background(), lab.Options{
		Study: s, Builder: &arm.Builder{}, Dir: filepath.Join(dir, "run"), Seed: 7, Blocks: 1,
	})
	if err != nil {
		log.Fatal(err)
	}
	a, err := verdict.Analyse(run) // any time later too: record.Open reads the folder
	if err != nil {
		log.Fatal(err)
	}
	inBlock := func(arm string) bool {
		return slices.ContainsFunc(run.Trials, func(t record.Trial) bool { return t.Block == 0 && t.Arm == arm })
	}
	fmt.Println("a and b in the first block:", inBlock("a"), inBlock("b"))
	fmt.Println("decided:", a.Decided()) // one block never is
	// Output:
	// a and b in the first block: true true
	// decided: false
}
