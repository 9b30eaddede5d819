package main

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/tarehq/tare/serve/middleware/accesslog"
	"github.com/tarehq/tare/serve/proxy/config"
)

// journal answers requests, and writes a line for each if the file names an access log.
type journal struct {
	http.Handler
	file *os.File // nil: none
	log  *accesslog.Log
}

// openJournal opens the log at a path for what h answers. Each file that is taken has it
// opened anew, so that a log that was moved away is let go.
func openJournal(path string, h http.Handler) (*journal, error) {
	if path == "" {
		return &journal{Handler: h}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, &config.Problem{Path: "access_log", Text: err.Error()}
	}
	log, err := accesslog.New(accesslog.Options{To: f})
	if err != nil {
		f.Close()
		return nil, err
	}
	return &journal{log.Middleware(h), f, log}, nil
}

// close writes what waits.
func (j *journal) close() {
	if j.file == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = j.log.Close(ctx) // the log has nobody to tell
	j.file.Close()
}
