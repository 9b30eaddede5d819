package cgroup

import (
	"regexp"
	"strings"
)

// A group of the kubelet's is pod and the pod's UID, or, for systemd, a slice whose name ends
// so, with underscores for the UID's hyphens. The UID of a pod that the node itself has is a
// checksum.
var (
	podGroup       = regexp.MustCompile(`(?:^|-)pod([0-9a-f]{32}|[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?:\.slice)?$`)
	containerGroup = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Pod returns the UID of the pod and the ID of the container that a process is in, given its
// list of groups, as /proc/PID/cgroup has it. Either may be "": a process beside a pod is in
// none, and of one in the reader's own pod the list does not show the pod's group.
func Pod(list string) (uid, container string) {
	for line := range strings.Lines(list) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		for part := range strings.SplitSeq(fields[2], "/") {
			slice, _, _ := strings.Cut(part, ":") // containerd may name both in one
			if m := podGroup.FindStringSubmatch(slice); m != nil {
				uid = strings.ReplaceAll(m[1], "_", "-")
			}
			if id := containerName(part); containerGroup.MatchString(id) {
				container = id
			}
		}
		if container != "" {
			return uid, container
		}
	}
	return uid, ""
}
