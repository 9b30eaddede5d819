package cli_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// What is no regular file is written, not replaced: as root a device would be gone.
func TestKeepFilePipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	if err := cli.CheckOutputs([]cli.Output{{Flag: "--html", Path: path}}); err != nil {
		t.Fatal(err) // and it does not wait for a reader
	}
	read := make(chan string, 1)
	go func() {
		text, err := os.ReadFile(path)
		if err != nil {
			text = []byte(err.Error())
		}
		read <- string(text)
	}()
	if err := cli.WriteFile(path, written("new")); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "new" {
		t.Errorf("through the pipe came %q, want new", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Errorf("it is no pipe any more (%v)", err)
	}
}

// What is written anew may be read by whom the user's umask lets read it.
func TestKeepFileUmask(t *testing.T) {
	t.Chdir(t.TempDir())
	defer syscall.Umask(syscall.Umask(0o077))
	if err := cli.WriteFile("report", written("private")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat("report"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want 0600", info.Mode(), err)
	}
}
