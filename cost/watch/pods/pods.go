// Package pods names the containers of the pods on a node of Kubernetes by what the kubelet
// leaves in the node's files, so that no right on the cluster's API is needed.
//
// A process's control groups have the UID of its pod and the ID of its container. The
// kubelet keeps the logs of a container in
//
//	/var/log/pods/NAMESPACE_POD_UID/CONTAINER/
//
// and beside that the link
//
//	/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log
//
// whose name has all that is wanted (pkg/kubelet/kuberuntime of Kubernetes).
package pods

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/tarehq/tare/internal/cgroup"
)

// Logs is where the kubelet keeps logs, unless it was told otherwise.
const Logs = "/var/log"

// Container is one of a pod's.
type Container struct {
	Namespace, Pod, Name string // without a namespace, Pod is its UID
}

// Service is the name of what the container does: the same for each pod of a workload, and
// when a pod takes another's place. It is "" if the container's name is not known.
func (c Container) Service() string {
	if c.Namespace == "" {
		return ""
	}
	return strings.TrimSuffix(c.Namespace+"/"+Workload(c.Pod)+"/"+c.Name, "/")
}

// Full is the pod's name, behind its namespace.
func (c Container) Full() string { return strings.TrimPrefix(c.Namespace+"/"+c.Pod, "/") }

// A controller ends a pod's name with five characters of an alphabet that makes no words; a
// Deployment's has a checksum in the same before that, a Job's may have the job's time or
// the pod's index; a StatefulSet's ends with a number.
var (
	generated = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}$`)
	revision  = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{6,10}$`)
	number    = regexp.MustCompile(`-\d+$`)
)

// Workload is a pod's name without what a controller added to its own: web of
// web-7d4b9c6f5-x2x4z and of web-0. It is a guess by the name's form.
func Workload(pod string) string {
	name := generated.ReplaceAllString(pod, "")
	if name != pod {
		if owner := revision.ReplaceAllString(name, ""); owner != name && owner != "" {
			return owner
		}
	}
	return cmp.Or(number.ReplaceAllString(name, ""), pod)
}

// Node knows the containers of a node. It is safe for concurrent use.
type Node struct {
	logs string

	mu         sync.Mutex
	read       time.Time
	containers map[string]Container   // by ID
	pods       map[string][]Container // by UID, one for each container
}

// stale is how long a reading of the files is good for if something is not in it.
const stale = 2 * time.Second

// Open reads what is in a folder of logs. It is an error if the kubelet has none there.
func Open(logs string) (*Node, error) {
	if _, err := os.Stat(filepath.Join(logs, "pods")); err != nil {
		return nil, fmt.Errorf("pods have no names: %w: is this a node of Kubernetes, and can its %s be read here", err, logs)
	}
	return &Node{logs: logs}, nil
}

// Of returns the container that a process is in, given its list of groups, as
// /proc/PID/cgroup has it; false if it is in no pod.
func (n *Node) Of(groups string) (c Container, in bool) {
	uid, id := cgroup.Pod(groups)
	if uid == "" && id == "" {
		return Container{}, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	c, known := n.find(uid, id)
	if !known && time.Since(n.read) > stale {
		n.look()
		c, known = n.find(uid, id)
	}
	if !known {
		c = Container{Pod: uid}
	}
	return c, known || uid != ""
}

// find looks a container up. If its ID is not known, one whose pod has no other is named
// whole, and of others the pod.
func (n *Node) find(uid, id string) (Container, bool) {
	if c, ok := n.containers[id]; ok {
		return c, true
	}
	all := n.pods[uid]
	if len(all) == 0 {
		return Container{}, false
	}
	c := all[0]
	if len(all) > 1 {
		c.Name = ""
	}
	return c, true
}

// look reads the files. What cannot be read is not known.
func (n *Node) look() {
	n.read, n.containers, n.pods = time.Now(), map[string]Container{}, map[string][]Container{}
	for _, name := range names(filepath.Join(n.logs, "containers")) {
		part := strings.Split(strings.TrimSuffix(name, ".log"), "_")
		if len(part) != 3 {
			continue
		}
		if at := strings.LastIndexByte(part[2], '-'); at > 0 {
			n.containers[part[2][at+1:]] = Container{Namespace: part[1], Pod: part[0], Name: part[2][:at]}
		}
	}
	for _, name := range names(filepath.Join(n.logs, "pods")) {
		part := strings.Split(name, "_")
		if len(part) != 3 {
			continue
		}
		for _, container := range names(filepath.Join(n.logs, "pods", name)) {
			n.pods[part[2]] = append(n.pods[part[2]], Container{Namespace: part[0], Pod: part[1], Name: container})
		}
	}
}

// names are those of what is in a folder, none if it cannot be read.
func names(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	all, _ := f.Readdirnames(-1)
	return all
}
