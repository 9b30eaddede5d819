package work

import (
	"bufio"
	"io"
	"os"
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

// drain takes d a line, and what the kernel adds to that: it sleeps there, so that
// its pace is no matter of the runtime's timers.
func drain(r *os.File, d time.Duration) {
	for lines := bufio.NewScanner(bufio.NewReaderSize(r, 64)); lines.Scan(); {
		sleep(d)
	}
}
