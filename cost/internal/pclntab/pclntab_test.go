package pclntab_test

import (
	"bufio"
	"bytes"
	"debug/elf"
	"debug/gosym"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost/internal/pclntab"
	"github.com/tarehq/tare/cost/internal/toolchain"
)

// supported skips a test where the package has nothing to read.
func supported(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skipf("reads programs for linux/amd64; this is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
}

func open(t testing.TB, path string) *pclntab.Table {
	t.Helper()
	table, err := pclntab.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

// build builds the program of testdata/self.
func build(t *testing.T, toolchain string, args ...string) string {
	t.Helper()
	return buildProgram(t, "self", toolchain, args...)
}

// buildProgram builds one of the programs of testdata by a version of Go.
func buildProgram(t *testing.T, name, toolchain string, args ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds programs")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+name+"\n\ngo 1.22\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, name)
	cmd := exec.Command("go", append(append([]string{"build", "-o", exe}, args...), ".")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN="+toolchain, "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return exe
}

// TestAgainstRuntime has programs say what their own runtime thinks of their
// addresses, and compares every line.
func TestAgainstRuntime(t *testing.T) {
	supported(t)
	newest := toolchain.Newest(t)
	for _, tt := range []struct {
		name, toolchain string
		args            []string
		pie             bool
	}{
		{name: "plain", toolchain: "local"},
		{name: "stripped", toolchain: "local", args: []string{"-ldflags=-s -w"}},
		{name: "pie", toolchain: "local", args: []string{"-buildmode=pie", "-ldflags=-s -w"}, pie: true},
		{name: "go1.22", toolchain: "go1.22.12"},
		{name: "go1.22-pie", toolchain: "go1.22.12", args: []string{"-buildmode=pie", "-ldflags=-s -w"}, pie: true},
		{name: "go1.23", toolchain: "go1.23.12", args: []string{"-ldflags=-s -w"}},
		{name: "go1.24-pie", toolchain: "go1.24.9", args: []string{"-buildmode=pie", "-ldflags=-s -w"}, pie: true},
		{name: "go1.25", toolchain: "go1.25.4"},
		{name: "newest", toolchain: newest},
		{name: "newest-pie", toolchain: newest, args: []string{"-buildmode=pie", "-ldflags=-s -w"}, pie: true},
		// The C linker gives C++ functions several names at one address.
		{name: "race", toolchain: "local", args: []string{"-race"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			present(t, tt.toolchain)
			if slices.Contains(tt.args, "-race") {
				linksC(t)
			}
			exe := build(t, tt.toolchain, tt.args...)
			table := open(t, exe)
			if table.PIE() != tt.pie {
				t.Errorf("PIE() = %t, want %t", table.PIE(), tt.pie)
			}
			if want := cmpVersion(tt.toolchain); !strings.HasPrefix(table.Go(), want) {
				t.Errorf("Go() = %q, want %q", table.Go(), want)
			}
			out, err := exec.Command(exe).Output()
			if err != nil {
				t.Fatal(err)
			}
			compare(t, table, out, strings.HasPrefix(tt.toolchain, "go1.22"))
		})
	}
}

// TestGoid has programs look for their goroutines' numbers in the runtime's records.
func TestGoid(t *testing.T) {
	supported(t)
	for _, version := range []string{"go1.22.12", "go1.23.12", "go1.24.9", "go1.25.4", "local", toolchain.Newest(t)} {
		t.Run(version, func(t *testing.T) {
			present(t, version)
			exe := buildProgram(t, "goid", version)
			out, err := exec.Command(exe).Output()
			if err != nil {
				t.Fatal(err)
			}
			if got, want := strings.TrimSpace(string(out)), strconv.Itoa(open(t, exe).Goid()); got != want {
				t.Errorf("goroutines find their numbers at %q, want %s alone", got, want)
			}
		})
	}
}

func cmpVersion(toolchain string) string {
	if toolchain == "local" {
		return runtime.Version()
	}
	return toolchain
}

// present skips a test whose toolchain is not on this machine.
func present(t *testing.T, toolchain string) {
	t.Helper()
	cmd := exec.Command("go", "version")
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN="+toolchain, "GOPROXY=off")
	if err := cmd.Run(); err != nil {
		t.Skipf("no toolchain %s on this machine", toolchain)
	}
}

// linksC skips a test whose program needs a C compiler.
func linksC(t *testing.T) {
	t.Helper()
	out, err := exec.Command("go", "env", "CGO_ENABLED", "CC").Output()
	if err != nil {
		t.Fatal(err)
	}
	enabled, cc, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if _, err := exec.LookPath(cc); enabled != "1" || err != nil {
		t.Skipf("needs cgo: CGO_ENABLED=%s, CC=%s", enabled, cc)
	}
}

// compare holds a table against what testdata/self printed. With flat that is only
// the innermost function of each address: Go 1.22 does not go on from there.
func compare(t *testing.T, table *pclntab.Table, out []byte, flat bool) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	lines.Scan()
	start, offset, _ := strings.Cut(lines.Text(), "\t")
	bias, ok := table.Bias(number(t, start), number(t, offset))
	if !ok || table.PIE() == (bias == 0) {
		t.Fatalf("Bias(%s, %s) = %#x, %t", start, offset, bias, ok)
	}
	n, inlined, wrong := 0, 0, 0
	elided := map[string]int{}
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		pc := number(t, fields[0]) - bias
		want := fields[1:]
		if want[0] == "" {
			continue // the runtime takes the first name of all for none
		}
		var got []string
		for _, f := range table.Frames(pc) {
			got = append(got, f.Func, f.File, strconv.Itoa(f.Line))
		}
		n++
		if len(got) > 3 {
			inlined++
		}
		if flat {
			got = got[:min(3, len(got))]
		}
		if slices.Equal(got, want) {
			continue
		}
		// What the runtime's iterator shows of a wrapper asked for by itself, its
		// tracebacks do not.
		if slices.Equal(got, want[3:]) {
			elided[want[0]]++
			continue
		}
		if wrong++; wrong <= 5 {
			t.Errorf("Frames(%#x)\n got %q\nwant %q", pc, got, want)
		}
	}
	if wrong > 0 || n < 5000 || inlined < 1000 {
		t.Errorf("%d of %d addresses differ, %d of them with inlined calls; want none of at least 5000, 1000", wrong, n, inlined)
	}
	left := 0
	for _, times := range elided {
		left += times
	}
	if left > n/20 || elided["runtime.deferreturn"] == 0 || elided["main.main"] > 0 {
		t.Errorf("left out as wrappers at %d of %d addresses: %v", left, n, elided)
	}
	t.Logf("%d addresses, %d of them with inlined calls, %d in wrappers", n, inlined, left)
}

func number(t *testing.T, s string) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestDecl compares the lines on which functions begin with this file's source.
func TestDecl(t *testing.T) {
	supported(t)
	_, file, _, _ := runtime.Caller(0)
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			want[f.Name.Name] = fset.Position(f.Type.Pos()).Line
		}
	}
	seen := 0
	for f := range open(t, "/proc/self/exe").Funcs() {
		name, own := strings.CutPrefix(f.Name, "github.com/tarehq/tare/cost/internal/pclntab_test.")
		line, known := want[name]
		if !own || !known {
			continue
		}
		seen++
		if f.Decl != line || filepath.Base(f.File) != filepath.Base(file) {
			t.Errorf("%s begins at %s:%d, want line %d of %s", f.Name, f.File, f.Decl, line, file)
		}
	}
	if seen < 4 {
		t.Errorf("%d of this file's functions found, want at least 4", seen)
	}
}

// TestPush checks what Push and SPDelta say against the code itself: `push %rbp`
// is followed by `mov %rsp,%rbp`, before it SP is at the return address, and after
// it eight bytes below.
func TestPush(t *testing.T) {
	supported(t)
	table := open(t, "/proc/self/exe")
	pushed, framed := 0, 0
	for f := range table.Funcs() {
		at, ok := table.Push(f)
		if deepest(table, f) > 8 {
			framed++
		}
		if !ok {
			continue
		}
		pushed++
		code, err := table.Text(f)
		if err != nil {
			t.Fatal(err)
		}
		if after := code[at-f.Entry:]; !bytes.HasPrefix(after, []byte{0x55, 0x48, 0x89, 0xe5}) && !strings.HasPrefix(f.Name, "runtime.") && !strings.Contains(f.File, ".s") {
			t.Errorf("%s: code at %#x is % x, want push and move", f.Name, at, after[:4])
		}
		before, ok1 := table.SPDelta(at)
		after, ok2 := table.SPDelta(at + 1)
		if !ok1 && !ok2 {
			continue // switches stacks
		}
		if before != 0 || after != 8 {
			t.Errorf("%s: SPDelta around the push is %d and %d, want 0 and 8", f.Name, before, after)
		}
		if got, ok := table.Lookup(at); !ok || got != f {
			t.Errorf("Lookup(%#x) = %v, %t, want %v", at, got, ok, f)
		}
		if off, ok := table.FileOffset(at); !ok || off == 0 {
			t.Errorf("FileOffset(%#x) = %d, %t", at, off, ok)
		}
	}
	if framed < 1000 || pushed < framed*95/100 {
		t.Errorf("Push found in %d functions of %d with a frame", pushed, framed)
	}
	t.Logf("Push found in %d functions, %d have a frame", pushed, framed)
}

// deepest returns the largest distance of SP from the return address at a few
// places of a function.
func deepest(table *pclntab.Table, f pclntab.Func) int {
	most := 0
	for pc := f.Entry; pc < f.End; pc += 1 + (f.End-f.Entry)/32 {
		if d, ok := table.SPDelta(pc); ok {
			most = max(most, d)
		}
	}
	return most
}

func TestOutside(t *testing.T) {
	supported(t)
	table := open(t, "/proc/self/exe")
	for _, pc := range []uint64{0, 1, 1 << 20, 1 << 40, ^uint64(0)} {
		if f, ok := table.Lookup(pc); ok {
			t.Errorf("Lookup(%#x) = %v, want none", pc, f)
		}
		if frames := table.Frames(pc); frames != nil {
			t.Errorf("Frames(%#x) = %v, want none", pc, frames)
		}
		if d, ok := table.SPDelta(pc); ok {
			t.Errorf("SPDelta(%#x) = %d, want none", pc, d)
		}
		if d, ok := table.FileOffset(pc); ok && pc > 1<<40 {
			t.Errorf("FileOffset(%#x) = %d, want none", pc, d)
		}
	}
	if _, ok := table.Push(pclntab.Func{Entry: 1}); ok {
		t.Error("Push of no function")
	}
	if _, err := table.Text(pclntab.Func{Entry: 1 << 40, End: 1<<40 + 8}); err == nil {
		t.Error("Text of no function gives no error")
	}
}

func TestRefused(t *testing.T) {
	supported(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := pclntab.Open(text); !errors.Is(err, pclntab.ErrUnsupported) {
		t.Errorf("a script: %v, want ErrUnsupported", err)
	}
	if sh, err := exec.LookPath("sh"); err == nil {
		if _, err := pclntab.Open(sh); !errors.Is(err, pclntab.ErrUnsupported) {
			t.Errorf("a C program: %v, want ErrUnsupported", err)
		}
	}
	if _, err := pclntab.Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v, want ErrNotExist", err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.ReplaceAll(self, []byte(runtime.Version()), []byte(strings.Repeat("x", len(runtime.Version()))))
	for name, content := range map[string][]byte{
		"half a program": self[:len(self)/2],
		"no version":     other,
		"newer":          bytes.ReplaceAll(self, []byte(runtime.Version()), []byte(fmt.Sprintf("%-*s", len(runtime.Version()), "go1.99"))),
		"older":          bytes.ReplaceAll(self, []byte(runtime.Version()), []byte(fmt.Sprintf("%-*s", len(runtime.Version()), "go1.21"))),
		"obfuscated":     bytes.ReplaceAll(self, []byte("\x00runtime.systemstack\x00"), []byte("\x00runtime.s7stemstack\x00")),
	} {
		path := filepath.Join(dir, "program")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := pclntab.Open(path); !errors.Is(err, pclntab.ErrUnsupported) {
			t.Errorf("%s: %v, want ErrUnsupported", name, err)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

// TestARM64 reads programs for arm64, and compares every function's first and last lines with
// what debug/gosym makes of the same tables.
func TestARM64(t *testing.T) {
	supported(t)
	t.Setenv("GOARCH", "arm64")
	t.Setenv("CGO_ENABLED", "0")
	if testing.Short() {
		t.Skip("builds programs")
	}
	dir := t.TempDir()
	source, exe := filepath.Join(dir, "main.go"), filepath.Join(dir, "program") // of the runtime alone, which is soon built
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(len(make([]int, 9))) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-buildmode=pie", "-ldflags=-s -w", "-o", exe, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	table := open(t, exe)
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sect := f.Section(".gopclntab")
	if sect == nil {
		sect = f.Section(".data.rel.ro.gopclntab")
	}
	data, err := sect.Data()
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := gosym.NewTable(nil, gosym.NewLineTable(data, f.Section(".text").Addr))
	if err != nil {
		t.Fatal(err)
	}
	n, frames := 0, 0
	for fn := range table.Funcs() {
		for _, pc := range []uint64{fn.Entry, (fn.Entry + (fn.End-fn.Entry)/2) &^ 3, fn.End - 4} {
			at := table.Frames(pc)
			if len(at) == 0 || strings.HasPrefix(fn.Name, "go:") {
				continue // what the compiler and the linker made up
			}
			n++
			file, line, of := symbols.PCToLine(pc)
			if of == nil || pclntab.Printed(of.Name) != fn.Name || at[0].Line > 0 && (file != at[0].File || line != at[0].Line) {
				t.Fatalf("%#x of %s: got %v, want %s:%d", pc, fn.Name, at, file, line)
			}
		}
		if at, ok := table.Push(fn); ok {
			before, known := table.SPDelta(at)
			after, still := table.SPDelta(at + 4)
			if at < fn.Entry || at >= fn.End || known && before != 0 || still && after <= 0 {
				t.Fatalf("%s makes its frame at %#x, where it is of %d bytes, and then of %d", fn.Name, at, before, after)
			}
			frames++
		}
	}
	if newstack := table.Find("runtime.newstack"); n < 1000 || frames < 300 || len(newstack) == 0 || !table.PIE() {
		t.Errorf("%d addresses were compared, %d frames, %v", n, frames, newstack)
	}
}

// TestFind finds functions by name: those that going through all of them finds.
func TestFind(t *testing.T) {
	supported(t)
	table := open(t, "/proc/self/exe")
	names := []string{"runtime.newstack", "runtime.goexit", "no.such"}
	var want []pclntab.Func
	for f := range table.Funcs() {
		if slices.Contains(names, f.Name) {
			want = append(want, f)
		}
	}
	if got := table.Find(names...); !slices.Equal(got, want) || len(got) < 2 {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestCut cuts a program's file short while its tables are in use: nothing is found in them
// any more.
func TestCut(t *testing.T) {
	supported(t)
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	table := open(t, path)
	goexit := table.Find("runtime.goexit")
	if len(goexit) == 0 {
		t.Fatal("runtime.goexit is not there")
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	pc := goexit[0].Entry
	if f, ok := table.Lookup(pc); ok {
		t.Errorf("Lookup = %v, want none", f)
	}
	if frames := table.Frames(pc); frames != nil {
		t.Errorf("Frames = %v, want none", frames)
	}
	if d, ok := table.SPDelta(pc); ok {
		t.Errorf("SPDelta = %d, want none", d)
	}
	for f := range table.Funcs() {
		t.Errorf("Funcs yields %v, want none", f)
	}
	if all := table.Find("runtime.goexit"); all != nil {
		t.Errorf("Find = %v, want none", all)
	}
}

// TestUnknownVersion reads programs of a version that is not known where its tables are as
// the newest known's, and refuses those where anything is not.
func TestUnknownVersion(t *testing.T) {
	supported(t)
	version := toolchain.Newest(t)
	present(t, version)
	exe := build(t, version, "-trimpath")
	known, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	want := open(t, exe)
	named := []byte(want.Go())
	unknown := bytes.ReplaceAll(known, named, append([]byte("go1.99"), bytes.Repeat([]byte("."), len(named))...)[:len(named)])
	got, err := pclntab.Read(unknown)
	if err != nil || !strings.HasPrefix(got.Go(), "go1.99") {
		t.Fatalf("got %v, want it read as go1.99", err)
	}
	for f := range want.Funcs() {
		if !slices.Equal(got.Frames(f.Entry), want.Frames(f.Entry)) {
			t.Fatalf("%s: got %v, want %v", f.Name, got.Frames(f.Entry), want.Frames(f.Entry))
		}
	}
	for _, name := range []string{"runtime.mcall", "runtime.systemstack", "runtime.newproc1"} {
		var f pclntab.Func
		for f = range want.Funcs() {
			if f.Name == name {
				break
			}
		}
		at, _ := want.FileOffset(f.Entry)
		changed := slices.Clone(unknown)
		clear(changed[at : at+f.End-f.Entry])
		if _, err := pclntab.Read(changed); !errors.Is(err, pclntab.ErrUnsupported) || !strings.Contains(err.Error(), name) {
			t.Errorf("with other code in %s: got %v, want it refused for that", name, err)
		}
	}
}
