package cgroup_test

import (
	"testing"

	"github.com/tarehq/tare/internal/cgroup"
)

// TestPod reads lists of groups as kubelets have them with each driver and version, seen
// from the node and from a pod.
func TestPod(t *testing.T) {
	const (
		id     = "0411a2a82311fbc65b137ca550d5f7e6b6863bc734759be2f515b0b67062d49a"
		uid    = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
		scored = "6ba7b810_9dad_11d1_80b4_00c04fd430c8"
		static = "5d4c8f0e3b7a11d180b400c04fd430c8"
	)
	for list, want := range map[string][2]string{
		"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + scored + ".slice/cri-containerd-" + id + ".scope\n":      {uid, id},
		"0::/kubepods.slice/kubepods-pod" + scored + ".slice/crio-" + id + ".scope\n":                                                   {uid, id},
		"0::/kubepods/besteffort/pod" + uid + "/" + id + "\n":                                                                           {uid, id},
		"0::/kubepods/pod" + static + "/" + id + "\n":                                                                                   {static, id},
		"0::/../../../kubepods-besteffort.slice/kubepods-besteffort-pod" + scored + ".slice/cri-containerd-" + id + ".scope\n":          {uid, id},
		"0::/../cri-containerd-" + id + ".scope\n":                                                                                      {"", id},
		"0::/system.slice/kubepods-besteffort-pod" + scored + ".slice:cri-containerd:" + id + "\n":                                      {uid, id},
		"12:cpu,cpuacct:/kubepods/burstable/pod" + uid + "/" + id + "\n11:memory:/kubepods/burstable/pod" + uid + "/" + id + "\n0::/\n": {uid, id},
		"0::/system.slice/docker-" + id + ".scope\n":                                                                                    {"", id},
		"0::/system.slice/kubelet.service\n":                                                                                            {},
		"0::/user.slice/podman.scope/pod-x\n":                                                                                           {},
		"0::/crio-conmon-" + id + ".scope\n":                                                                                            {},
		"":                                                                                                                              {},
		"0::/kubepods/pod../x\n":                                                                                                        {},
	} {
		if uid, id := cgroup.Pod(list); uid != want[0] || id != want[1] {
			t.Errorf("%q: got %q, %q, want %q", list, uid, id, want)
		}
	}
}
