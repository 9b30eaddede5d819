// Command faults serves / with one fault planted, for instruments that find
// such faults to be held against; -healthy serves the same without it.
//
//	faults -fault pool
//	faults -fault pool -healthy
//
// Profiles are under /debug/pprof/. Some faults lie outside the program: headers
// shows when requests bring many header fields, procs when GOMAXPROCS is beyond
// the cgroup's quota, throttled when the quota is less than what requests need.
package main

import (
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/arms/arm"
)

// twins are a handler with a fault and one without.
type twins struct{ sick, well func() http.Handler }

// faults by the name of the rule that is to find them, a second one of a rule
// with its own word behind a dash.
func faults() map[string]twins {
	return map[string]twins{
		"json":              {reflected, appended},
		"format":            {printed, concatenated},
		"contexts":          {valueEach, valueOnce},
		"headers":           {plain, plain},
		"introspection":     {askEach, askSometimes},
		"compression":       {compressHard, compressFast},
		"compression-again": {compressAgain, compressFast},
		"owners":            {compileEach, compileOnce},
		"owners-middleware": {settleEach, settleOnce},
		"pool":              {takeAndKeep, takeAndReturn},
		"pool-new":          {poolEach, takeAndReturn},
		"buffers":           {keepGrown, dropGrown},
		"goroutines":        {leave, finish},
		"gc":                {collectOften, collectRarely},
		"mutex":             {oneLock, noLock},
		"logging":           {logAndWait, logAside},
		"logging-lock":      {logUnderLock, logAside},
		"sleep":             {sleep, plain},
		"queue":             {onePlace, manyPlaces},
		"call":              {askSlow, readBody},
		"fsync":             {syncEach, syncNever},
		"client":            {leaveBody, readBody},
		"client-new":        {clientEach, readBody},
		"deadline":          {askForEver, readBody},
		"bodies":            {readWhole, readBounded},
		"labels":            {labelEach, labelFew},
		"timeouts":          {plain, plain},
		"timeouts-short":    {plain, plain},
		"timeouts-late":     {plain, plain},
		"procs":             {busy, busy},
		"throttled":         {busy, busy},
		"defers":            {deferInLoop, deferInCall},
		"escapes":           {captureConfig, shareConfig},
	}
}

func main() {
	all := faults()
	name := flag.String("fault", "", "fault to plant: "+strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	healthy := flag.Bool("healthy", false, "serve the same without the fault")
	flag.Parse()
	f, ok := all[*name]
	if !ok {
		fmt.Fprintf(os.Stderr, "faults: -fault %q is not known: see -help\n", *name)
		os.Exit(2)
	}
	h := f.sick
	if *healthy {
		h = f.well
	}
	mux := http.NewServeMux()
	mux.Handle("/{$}", h())
	mux.Handle("/debug/pprof/", http.DefaultServeMux)
	patience := 2 * time.Second // for a header
	if wrong, ok := impatience()[*name]; ok && !*healthy {
		patience = wrong
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	arm.Main(arm.Options{Handler: mux, Serve: func(l net.Listener) error { return server.Serve(l) }})
}

// impatience is how long the server waits for a header where that is the fault.
func impatience() map[string]time.Duration {
	return map[string]time.Duration{"timeouts": 0, "timeouts-short": 50 * time.Millisecond, "timeouts-late": 11 * time.Second}
}
