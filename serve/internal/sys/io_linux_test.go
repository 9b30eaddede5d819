package sys_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/sys"
)

// TestWriteBoth has both parts be written as far as there is room.
func TestWriteBoth(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	raw, err := w.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	a, b := "head and ", strings.Repeat("body ", 1<<20)
	n := 0
	if err := raw.Write(func(fd uintptr) bool {
		var errno error
		n, errno = sys.WriteBoth(fd, []byte(a), []byte(b))
		if n == 0 {
			t.Error(errno)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if n <= len(a) || n >= len(a)+len(b) {
		t.Fatalf("the pipe took %d bytes, want some of both parts", n)
	}
	got := make([]byte, 2*n)
	m, err := r.Read(got)
	for m < n && err == nil {
		var more int
		more, err = r.Read(got[m:])
		m += more
	}
	if err != nil || string(got[:m]) != (a + b)[:n] {
		t.Errorf("%d bytes came, %v: not the %d that were written", m, err, n)
	}
}
