package main

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
)

// tags compute what the ETag of a file says.
var tags = map[string]func(fs.FileInfo, []byte) string{
	"time": func(info fs.FileInfo, _ []byte) string {
		return strconv.FormatInt(info.Size(), 16) + "-" + strconv.FormatInt(info.ModTime().UnixNano(), 16)
	},
	"sha256": func(_ fs.FileInfo, data []byte) string {
		sum := sha256.Sum256(data)
		return hex.EncodeToString(sum[:])
	},
	"crc32": func(_ fs.FileInfo, data []byte) string {
		return strconv.FormatUint(uint64(crc32.ChecksumIEEE(data[:min(len(data), 1<<20)])), 16)
	},
}

// mapped maps the file into memory for each request, so that the tag is that of the file
// as it is. A file cut short meanwhile ends the process.
type mapped struct {
	root *os.Root
	tag  func(fs.FileInfo, []byte) string
}

func (h *mapped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, err := h.root.Open(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		http.NotFound(w, r)
		return
	}
	data, unmap, err := mapFile(f, int(info.Size()))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer unmap()
	tag := `"` + h.tag(info, data) + `"`
	w.Header().Set("Etag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.URL.Path)))
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // fails when the client has gone
}
