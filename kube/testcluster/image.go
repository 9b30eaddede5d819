package testcluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"testing"
)

// Image is an image of static programs, and nothing else.
type Image struct {
	Name    string            // such as lab.local/tare:1
	Files   map[string]string // of this machine, by their paths in the image
	Program []string          // that runs where a pod names none
}

// Build builds a program that is static, for an image. dir is in the program's module.
func Build(t testing.TB, dir, pkg, to string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", to, pkg)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
}

// write writes the image as an archive that containerd imports: a layer, a description of it,
// and a manifest that names both.
func (i Image) write(to string) error {
	layer, err := i.layer()
	if err != nil {
		return fmt.Errorf("making image %s: %w", i.Name, err)
	}
	type object map[string]any
	config, err := json.Marshal(object{
		"architecture": runtime.GOARCH, "os": "linux", "config": object{"Entrypoint": i.Program, "WorkingDir": "/"},
		"rootfs": object{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}}, "history": []object{{"created_by": "testcluster"}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]object{{"Config": digest(config) + ".json", "RepoTags": []string{i.Name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		name    string
		content []byte
	}{{digest(config) + ".json", config}, {"layer.tar", layer}, {"manifest.json", manifest}} {
		if err := add(w, f.name, f.content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}

func (i Image) layer() ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := map[string]bool{"": true, ".": true}
	for _, name := range slices.Sorted(maps.Keys(i.Files)) {
		for _, dir := range parents(name) {
			if !made[dir] {
				made[dir] = true
				if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
					return nil, err
				}
			}
		}
		content, err := os.ReadFile(i.Files[name])
		if err != nil {
			return nil, err
		}
		if err := add(w, name, content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// parents are the folders above a path, outer ones first.
func parents(name string) []string {
	var all []string
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		all = append(all, dir)
	}
	slices.Reverse(all)
	return all
}

func add(w *tar.Writer, name string, content []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
