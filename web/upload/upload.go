// Package upload unpacks the folder of a run that somebody sent.
//
// Of an archive only the files of a run are taken, by their names, into a folder that is
// given; report.html, which is written from the rest, is left out. Anything else in it is
// an error: links, devices, other names, two files of one name, and more than [Limits].
// An archive may hold the files themselves or one folder of them.
package upload

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Limits bound what is unpacked.
type Limits struct {
	Bytes int64 // of all files
	Files int
}

var (
	// files and folders are what a run has at its top.
	files   = []string{"manifest.json", "trials.jsonl", "captures.jsonl", "agents.jsonl"}
	folders = []string{"hist", "profiles"}
	plain   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
)

// Unpack writes the files of a run from an archive, zip or tar, the latter perhaps by
// gzip, into a folder that exists. After an error the folder may hold a part of them.
func Unpack(archive io.ReaderAt, size int64, dir string, l Limits) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{root: root, left: l}
	head := make([]byte, 4)
	n, err := archive.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	all := io.NewSectionReader(archive, 0, size)
	switch head = head[:n]; {
	case bytes.HasPrefix(head, []byte("PK")):
		err = u.zip(archive, size)
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		var z *gzip.Reader
		if z, err = gzip.NewReader(bufio.NewReader(all)); err == nil {
			err = u.tar(bound(z, l))
		}
	default:
		err = u.tar(all)
	}
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	if _, err := root.Stat("manifest.json"); err != nil {
		return errors.New("unpacking: the archive holds no manifest.json: send the folder of a run as zip, tar or tar.gz")
	}
	return nil
}

type unpacker struct {
	root   *os.Root
	left   Limits
	folder string // that all names begin with; "" = not known yet, "." = none
}

// mostZip bounds archives in zip's form, of which the list of files is read into memory.
const mostZip = 32 << 20

func (u *unpacker) zip(archive io.ReaderAt, size int64) error {
	if size > mostZip {
		return fmt.Errorf("a zip of %d bytes: at most %d are taken; send a larger run as tar.gz", size, mostZip)
	}
	z, err := zip.NewReader(archive, size)
	if err != nil {
		return err
	}
	for _, f := range z.File {
		if err := u.count(); err != nil {
			return err
		}
		if !f.Mode().IsRegular() && !f.Mode().IsDir() {
			return fmt.Errorf("%q is no file and no folder", f.Name)
		}
		if f.Mode().IsDir() {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return fmt.Errorf("%q: %w", f.Name, err)
		}
		if err := errors.Join(u.file(f.Name, r), r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// bounded is what gzip makes of an archive, up to a size. What is read past, such as files of
// other names, is not kept and so would not end it.
type bounded struct {
	r    io.Reader
	left int64 // bytes
}

// bound has room for all that may be kept, with the headers and the padding of a tar.
func bound(r io.Reader, l Limits) io.Reader {
	const perFile, behind = 4096, 1 << 20
	return &bounded{r, l.Bytes + int64(l.Files)*perFile + behind}
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.New("the archive is too large unpacked")
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func (u *unpacker) tar(r io.Reader) error {
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := u.count(); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir, tar.TypeXGlobalHeader:
		case tar.TypeReg:
			if err := u.file(h.Name, t); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%q is no file and no folder", h.Name)
		}
	}
}

func (u *unpacker) count() error {
	if u.left.Files--; u.left.Files < 0 {
		return errors.New("the archive holds too many files")
	}
	return nil
}

// file writes one file, if it is one that is kept.
func (u *unpacker) file(name string, r io.Reader) error {
	at, err := u.place(name)
	if err != nil || at == "" {
		return err
	}
	if dir := path.Dir(at); dir != "." {
		if err := u.root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	f, err := u.root.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%q is there twice", name)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(r, u.left.Bytes+1))
	u.left.Bytes -= n
	if err == nil && u.left.Bytes < 0 {
		err = errors.New("the archive's files are too large")
	}
	return errors.Join(err, f.Close())
}

// place is where a file goes; "" if it is none that is kept.
func (u *unpacker) place(name string) (string, error) {
	foreign := fmt.Errorf("%q does not belong to a run: send the folder of one run alone", name)
	parts := strings.Split(strings.TrimPrefix(name, "./"), "/")
	if strings.HasPrefix(parts[len(parts)-1], ".") && !slices.Contains(parts, "..") {
		return "", nil // what a write left that was not completed, or a system's own
	}
	if u.folder == "" {
		u.folder = "."
		if len(parts) > 1 && !slices.Contains(folders, parts[0]) {
			u.folder = parts[0]
		}
	}
	if u.folder != "." {
		if len(parts) < 2 || parts[0] != u.folder {
			return "", foreign
		}
		parts = parts[1:]
	}
	switch {
	case len(parts) == 1 && parts[0] == "report.html":
		return "", nil
	case len(parts) == 1 && slices.Contains(files, parts[0]):
		return parts[0], nil
	case len(parts) == 2 && slices.Contains(folders, parts[0]) && plain.MatchString(parts[1]):
		return path.Join(parts...), nil
	}
	return "", foreign
}
