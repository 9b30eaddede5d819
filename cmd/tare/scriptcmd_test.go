package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tarehq/tare/stats/hist"
)

// statusCmd runs a command that must exit with a status.
//
//	status 3 tare load $URL
func statusCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status WANT COMMAND [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitStatus(ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("%s: got exit status %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

func exitStatus(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// interruptCmd runs a command, sends it SIGINT when it first writes to standard
// error, and wants it to exit with a status. Its standard output goes to a file.
//
//	interrupt 130 out.txt tare load $URL
func interruptCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt WANT FILE COMMAND [ARG…]")
	}
	out, err := os.Create(ts.MkAbs(args[1]))
	ts.Check(err)
	defer out.Close()
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Dir, cmd.Stdout = ts.MkAbs("."), out
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	giveUp := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer giveUp.Stop()
	first, err := bufio.NewReader(stderr).ReadString('\n')
	ts.Check(err)
	ts.Logf("interrupting after %q", first)
	ts.Check(cmd.Process.Signal(os.Interrupt))
	if _, err := io.Copy(io.Discard, stderr); err != nil {
		ts.Fatalf("reading standard error: %v", err)
	}
	if got := strconv.Itoa(exitStatus(cmd.Wait())); got != args[0] {
		ts.Fatalf("%s: got exit status %s, want %s", strings.Join(args[2:], " "), got, args[0])
	}
}

// killedCmd runs a command and kills it, as nothing can be caught, once the file
// that a pattern names has so many lines.
//
//	killed 4 runs/*/trials.jsonl tare run small.yaml
func killedCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: killed LINES PATTERN COMMAND [ARG…]")
	}
	if _, err := endAt(ts, args[0], args[1], args[2:], os.Kill); exitStatus(err) != -1 { // of a process that a signal ended
		ts.Fatalf("ended with %v, want it killed", err)
	}
}

// interruptedCmd does the same by SIGINT, after which the command must exit with status 130.
// What it printed goes to a file.
//
//	interrupted 4 runs/*/trials.jsonl said.txt tare run small.yaml
func interruptedCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: interrupted LINES PATTERN FILE COMMAND [ARG…]")
	}
	said, err := endAt(ts, args[0], args[1], args[3:], os.Interrupt)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(said), 0o600))
	if got := exitStatus(err); got != 130 {
		ts.Fatalf("got exit status %d, want 130\n%s", got, said)
	}
}

// endAt runs a command and sends it a signal once the file that a pattern names has so many
// lines. It returns what the command printed and how it ended.
func endAt(ts *testscript.TestScript, count, pattern string, args []string, signal os.Signal) (string, error) {
	want, err := strconv.Atoi(count)
	ts.Check(err)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), append(os.Environ(), "XDG_CACHE_HOME="+ts.Getenv("XDG_CACHE_HOME"), "GOWORK="+ts.Getenv("GOWORK"))
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	giveUp := time.After(2 * time.Minute)
	for lines(ts.MkAbs(pattern)) < want {
		select {
		case err := <-ended:
			ts.Fatalf("ended before it was to: %v\n%s", err, said.String())
		case <-giveUp:
			cmd.Process.Kill()
			<-ended
			ts.Fatalf("%s: no %d lines after two minutes\n%s", pattern, want, said.String())
		case <-look.C:
		}
	}
	ts.Check(cmd.Process.Signal(signal))
	err = <-ended
	return said.String(), err
}

// lines counts those of the first file that a pattern names.
func lines(pattern string) int {
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return 0
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "\n")
}

// parsesCmd reads a file in a form: json, jsonl, csv or hdr. For hdr the number
// of values of a tag may be wanted.
//
//	parses hdr out.hdr service 200
func parsesCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: parses json|jsonl|csv|hdr FILE [TAG COUNT]")
	}
	text := ts.ReadFile(args[1])
	switch args[0] {
	case "json":
		var v map[string]any
		ts.Check(json.Unmarshal([]byte(text), &v))
	case "jsonl":
		for line := range strings.Lines(text) {
			var v map[string]any
			ts.Check(json.Unmarshal([]byte(line), &v))
		}
	case "csv":
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		ts.Check(err)
		if len(rows) < 2 {
			ts.Fatalf("%s: got %d rows, want a header and more", args[1], len(rows))
		}
	case "hdr":
		entries, err := hist.ReadLog(strings.NewReader(text))
		ts.Check(err)
		for _, e := range entries {
			if len(args) == 4 && e.Tag == args[2] {
				if got := strconv.FormatUint(e.Hist.Count(), 10); got != args[3] {
					ts.Fatalf("%s: got %s values of %s, want %s", args[1], got, e.Tag, args[3])
				}
				return
			}
		}
		if len(args) == 4 {
			ts.Fatalf("%s: holds no %s", args[1], args[2])
		}
	default:
		ts.Fatalf("parses: form %q is not known", args[0])
	}
}
