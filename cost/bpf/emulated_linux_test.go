//go:build linux && amd64

package bpf_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestARM64 samples a process on an emulated machine with the kernel that TARE_ARM64_KERNEL
// names, and counts its requests and times its answers where that is 6.6 or newer, as in
// bookworm-backports. Of Debian's package linux-image-arm64 it is the file /boot/vmlinuz-VERSION:
//
//	dpkg --add-architecture arm64 && apt-get update && apt-get install qemu-system-arm
//	apt-get download linux-image-cloud-arm64 # shows of which package that is the kernel
//	dpkg -x linux-image-*.deb DIR && TARE_ARM64_KERNEL=DIR/boot/vmlinuz-* go test ./cost/bpf -run ARM64 -v
func TestARM64(t *testing.T) {
	kernel := os.Getenv("TARE_ARM64_KERNEL")
	if kernel == "" {
		t.Skip("SKIPPED: sampling on arm64: TARE_ARM64_KERNEL names no kernel to emulate a machine with")
	}
	qemu, err := exec.LookPath("qemu-system-aarch64")
	if err != nil {
		t.Skipf("SKIPPED: sampling on arm64: %v (Debian package qemu-system-arm)", err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "init")
	build := exec.Command("go", "build", "-o", program, "./testdata/emulated")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	initrd := filepath.Join(dir, "initrd")
	if err := os.WriteFile(initrd, archive(content), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, qemu, "-machine", "virt", "-cpu", "cortex-a57", "-m", "1024", "-nographic", "-no-reboot", "-nic", "none",
		"-kernel", kernel, "-initrd", initrd, "-append", "console=ttyAMA0 quiet panic=-1").CombinedOutput()
	var said []string
	for line := range strings.Lines(string(out)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "tare: "); ok {
			said = append(said, text)
		}
	}
	m := regexp.MustCompile(`whole ([0-9.]+) of ([0-9.]+), ([0-9]+) samples`).FindStringSubmatch(strings.Join(said, "\n"))
	if err != nil || m == nil {
		t.Fatalf("%v\n%s", err, out[max(0, len(out)-4000):])
	}
	t.Logf("%s", strings.Join(said, "\n"))
	whole, _ := strconv.ParseFloat(m[1], 64)
	leaves, _ := strconv.ParseFloat(m[2], 64)
	samples, _ := strconv.Atoi(m[3])
	if leaves < 0.5 || whole < 0.95*leaves || samples < 100 {
		t.Errorf("%.3f of the CPU is in the leaf, %.3f of it on whole stacks, of %d samples: want most of 100 and more", leaves, whole, samples)
	}
	for _, text := range said {
		var requests float64
		var d string
		if n, _ := fmt.Sscanf(text, "counted %f requests in %s", &requests, &d); n > 0 && requests < 10 {
			t.Errorf("%s: want some", text)
		}
		var answers int
		if n, _ := fmt.Sscanf(text, "timed %d answers", &answers); n > 0 && answers < 10 {
			t.Errorf("%s: want some", text)
		}
	}
}

// archive is a root file system, in cpio's newc form, with a program as /init.
func archive(program []byte) []byte {
	var b bytes.Buffer
	file := func(name string, mode int, content []byte) {
		links, size := 1, len(content)
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00", b.Len()+1, mode, 0, 0, links, 0, size, 0, 0, 0, 0, len(name)+1, 0, name)
		pad(&b)
		b.Write(content)
		pad(&b)
	}
	const folder, executable = 0o040755, 0o100755
	for _, name := range []string{"proc", "sys"} {
		file(name, folder, nil)
	}
	file("init", executable, program)
	file("TRAILER!!!", 0, nil)
	return b.Bytes()
}

// pad fills up to a multiple of four bytes.
func pad(b *bytes.Buffer) {
	for b.Len()%4 != 0 {
		b.WriteByte(0)
	}
}
