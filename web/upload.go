package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tarehq/tare/web/history"
	"github.com/tarehq/tare/web/links"
	"github.com/tarehq/tare/web/upload"
)

const (
	// mostSent bounds an archive, in bytes.
	mostSent = 128 << 20
	// sendFor is how long an archive may take to arrive.
	sendFor = 10 * time.Minute
)

// unpackedLimits bound what is in an archive.
var unpackedLimits = upload.Limits{Bytes: 256 << 20, Files: 50_000}

// runID is the name that a run may have that somebody sent.
var runID = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+-]{0,127}$`)

// upload takes a run that somebody sent who knows the token.
func (s *Site) upload(w http.ResponseWriter, r *http.Request) error {
	if s.o.Token == "" {
		return problem{http.StatusForbidden, "This server takes no runs. Start it with --upload-token-file to allow it."}
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	sum := sha256.Sum256([]byte(token))
	if !ok || subtle.ConstantTimeCompare(sum[:], s.token[:]) != 1 {
		w.Header().Set("WWW-Authenticate", `Bearer realm="tare"`)
		return problem{http.StatusUnauthorized, "Send the token of the server in the header field Authorization: Bearer TOKEN."}
	}
	if !s.adding.TryLock() {
		w.Header().Set("Retry-After", "5")
		return problem{http.StatusServiceUnavailable, "Another run is being sent. Try again."}
	}
	defer s.adding.Unlock()
	c := http.NewResponseController(w)
	deadline := time.Now().Add(sendFor)
	if err := c.SetWriteDeadline(deadline.Add(time.Minute)); err != nil {
		return err
	}
	name, err := s.add(http.MaxBytesReader(w, &arriving{r.Body, c, deadline, s.patience}, mostSent))
	if err != nil {
		return err
	}
	if _, err := s.o.Index.Sync(r.Context()); err != nil { // the run has its place: Follow takes it over
		s.o.Log.Error("updating the index", "error", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", links.Run(name))
	w.WriteHeader(http.StatusCreated)
	return json.NewEncoder(w).Encode(map[string]string{"run": name, "path": links.Run(name)})
}

// arriving is an archive on its way. Others wait for it, so it is given up once nothing comes.
type arriving struct {
	io.ReadCloser
	c        *http.ResponseController
	deadline time.Time
	patience time.Duration // until the next bytes come
}

func (a *arriving) Read(p []byte) (int, error) {
	next := time.Now().Add(a.patience)
	if next.After(a.deadline) {
		next = a.deadline
	}
	if err := a.c.SetReadDeadline(next); err != nil {
		return 0, err
	}
	n, err := a.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) { // from now on the server reads, to see whether the client is there
		if failed := a.c.SetReadDeadline(time.Time{}); failed != nil {
			err = failed
		}
	}
	return n, err
}

// add unpacks an archive beside the runs, reads it as a run, and only then gives it its
// place.
func (s *Site) add(body io.Reader) (name string, err error) {
	root := s.o.Index.Root()
	sweep(root, time.Now())
	work, err := os.MkdirTemp(root, unpacking)
	if err != nil {
		return "", fmt.Errorf("keeping a run that was sent: %w", err)
	}
	defer os.RemoveAll(work)
	archive, err := os.Create(filepath.Join(work, "archive"))
	if err != nil {
		return "", err
	}
	defer archive.Close()
	size, err := io.Copy(archive, body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return "", problem{http.StatusRequestEntityTooLarge, fmt.Sprintf("The archive is larger than %d bytes.", tooLarge.Limit)}
	}
	if err != nil {
		return "", problem{http.StatusBadRequest, "The archive did not arrive whole."}
	}
	dir := filepath.Join(work, "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	if err := upload.Unpack(archive, size, dir, unpackedLimits); err != nil {
		return "", refusal(work, err)
	}
	run, _, err := history.OpenRun(dir)
	if err != nil {
		return "", refusal(work, err)
	}
	if name = run.Manifest.ID; !runID.MatchString(name) {
		return "", problem{http.StatusUnprocessableEntity, fmt.Sprintf("The run calls itself %q, which is no name for a folder.", name)}
	}
	place := s.o.Index.Dir(name)
	if _, err := os.Lstat(place); !errors.Is(err, fs.ErrNotExist) {
		return "", problem{http.StatusConflict, fmt.Sprintf("There is a run %s already.", name)}
	}
	return name, os.Rename(dir, place)
}

// unpacking begins the names of folders in which archives are unpacked.
const unpacking = ".upload-"

// sweep removes what uploads left behind that were killed: none takes twice as long as an archive
// may take to arrive.
func sweep(root string, now time.Time) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return // adding the run fails, and says so
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), unpacking) {
			continue
		}
		if at, err := e.Info(); err == nil && now.Sub(at.ModTime()) > 2*sendFor {
			os.RemoveAll(filepath.Join(root, e.Name())) // else the next upload tries again
		}
	}
}

// refusal is why what was sent is no run, without where it was unpacked.
func refusal(work string, err error) error {
	return problem{http.StatusUnprocessableEntity, "This is no run: " + strings.ReplaceAll(err.Error(), work+string(filepath.Separator), "")}
}
