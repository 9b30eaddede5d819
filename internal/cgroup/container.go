package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mounted is where control groups are usually mounted.
const Mounted = "/sys/fs/cgroup"

// Container returns the directory of the control group of a running container, by
// its ID or the beginning of it, as Docker, containerd, CRI-O and Podman name
// groups.
func Container(id string) (string, error) {
	if id == "" || strings.ContainsAny(id, "/.") {
		return "", fmt.Errorf("%q is no ID of a container", id)
	}
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return "", err
	}
	found := map[string]string{} // the whole ID → directory
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it has just ended
		}
		whole, dir := containerOf(string(text), id)
		if dir != "" {
			found[whole] = dir
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no process here is in a container %s…", id)
	case 1:
		for _, dir := range found {
			return dir, nil
		}
	}
	var all []string
	for whole := range found {
		all = append(all, whole)
	}
	slices.Sort(all)
	return "", fmt.Errorf("more than one container's ID begins with %s: %s", id, strings.Join(all, ", "))
}

// containerOf looks through a process's list of groups for that of a container.
func containerOf(list, id string) (whole, dir string) {
	for line := range strings.Lines(list) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		path := fields[2]
		for path != "/" && path != "." && path != "" {
			if name := containerName(filepath.Base(path)); strings.HasPrefix(name, id) {
				if dir := mounted(fields[1], path); dir != "" {
					return name, dir
				}
			}
			path = filepath.Dir(path)
		}
	}
	return "", ""
}

// containerName returns the ID in the name of a group, which may be the ID itself,
// or docker-ID.scope and the like; "" of the group that Podman and CRI-O give the
// container's monitor, libpod-conmon-ID.scope.
func containerName(group string) string {
	name := strings.TrimSuffix(group, ".scope")
	if strings.Contains(name, "-conmon-") {
		return ""
	}
	return name[strings.LastIndexAny(name, "-:")+1:]
}

// mounted returns the directory of a group; controllers are those of its hierarchy,
// none for the second version.
func mounted(controllers, path string) string {
	for _, dir := range []string{filepath.Join(Mounted, controllers, path), filepath.Join(Mounted, "unified", path)} {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); !errors.Is(err, os.ErrNotExist) {
			return dir
		}
	}
	return ""
}
