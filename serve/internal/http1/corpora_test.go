package http1_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A vector is one case that another project wrote.
type vector struct {
	ID     string
	Kind   string
	Bytes  string `json:"bytes_b64"`
	Expect string
	Strict *bool // llhttp: false where the case needs one of its lenient modes
	in     []byte
}

// corpora returns the directory of the cases, which are data of other projects
// and not kept here. The test is skipped where they are absent.
func corpora(t testing.TB) string {
	dir := os.Getenv("TARE_CORPORA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "corpora")
	}
	if _, err := os.Stat(filepath.Join(dir, "MANIFEST.json")); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no cases of other projects in %s; TARE_CORPORA says where they are", dir)
	}
	return dir
}

// jsonLines decodes each line of a gzipped file.
func jsonLines(t testing.TB, path string, each func(line []byte)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
	lines := bufio.NewScanner(zip)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		each(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
}

// vectors returns the requests among the cases, in order of their ids. Where
// two share one, the later gets a number.
func vectors(t testing.TB) []vector {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(corpora(t), "*.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	for _, path := range paths {
		if strings.HasPrefix(filepath.Base(path), "rfc_") {
			continue
		}
		jsonLines(t, path, func(line []byte) {
			var v vector
			if err := json.Unmarshal(line, &v); err != nil {
				t.Fatalf("reading %s: %v", path, err)
			}
			if v.Kind != "request" || v.Strict != nil && !*v.Strict {
				return
			}
			if v.in, err = base64.StdEncoding.DecodeString(v.Bytes); err != nil {
				t.Fatalf("reading %s: %s: %v", path, v.ID, err)
			}
			if strings.HasPrefix(v.ID, "httparse/uri.rs/") { // cases of targets alone
				v.in = bytes.Replace(v.in, []byte("\r\nHost: \r\n"), []byte("\r\n"), 1)
			}
			if !strings.HasPrefix(v.ID, "h1spec/") && !strings.Contains(v.ID, "missing_host") {
				v.in = withHost(v.in)
			}
			all = append(all, v)
		})
	}
	return all
}

var (
	requestLine = regexp.MustCompile(`(?:^|\n)[!-~]+ [^ \r\n]+ HTTP/1\.[1-9]\r\n`)
	// The authority of a target, if that is all but the last thing said.
	absoluteTarget = regexp.MustCompile(` [a-zA-Z][a-zA-Z0-9+.-]*://(?:[^/?# @]*@)?([^/?# ]+)[^ ]* HTTP/1\.[1-9]\r\n$`)
	hostField      = regexp.MustCompile(`(?i)\nhost[ \t]*:`)
)

// withHost adds a Host field to each HTTP/1.1 request that lacks one: most
// cases were written for parsers that do not ask for it.
func withHost(in []byte) []byte {
	if !bytes.Contains(in, []byte(" HTTP/1.")) {
		return in
	}
	var out []byte
	for {
		at := requestLine.FindIndex(in)
		if at == nil {
			return append(out, in...)
		}
		out = append(out, in[:at[1]]...)
		head := in[at[1]-1:] // from the LF of the request line
		if end := bytes.Index(head, []byte("\n\r\n")); end >= 0 {
			head = head[:end]
		}
		in = in[at[1]:]
		if !hostField.Match(head) {
			host := "localhost"
			if absolute := absoluteTarget.FindSubmatch(out); absolute != nil {
				host = string(absolute[1])
			}
			out = append(out, "Host: "+host+"\r\n"...)
		}
	}
}

// sameInParts feeds a case byte by byte and makes sure of the same outcome.
func sameInParts(t *testing.T, v vector, whole outcome) {
	t.Helper()
	got := drive(v.in, 1, strict)
	if got.verdict != whole.verdict || got.status != whole.status || got.reason != whole.reason ||
		!slices.EqualFunc(got.requests, whole.requests, same) {
		t.Errorf("%s: byte by byte %+v, whole %+v, of\n\t%s", v.ID, got, whole, quote(v.in))
	}
}
