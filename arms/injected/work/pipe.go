package work

import (
	"bufio"
	"io"
	"os"
	"runtime"
	"time"
)

// slowPipe returns the end to write to of a pipe whose other end is read a line
// in every d, as long as the program runs.
func slowPipe(d time.Duration) (io.Writer, error) {
	r, w, err := pipe()
	if err != nil {
		return nil, err
	}
	go drain(r, d)
	return w, nil
}

// drain has a thread of its own: its pace is then no matter of the scheduler's.
func drain(r *os.File, d time.Duration) {
	runtime.LockOSThread()
	sharpen()
	for lines := bufio.NewScanner(bufio.NewReaderSize(r, 64)); lines.Scan(); {
		sleep(d)
	}
}
