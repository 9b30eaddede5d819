package cgroup

import "testing"

// TestContainerName takes the group of a container's monitor, which has the same ID in
// its name, for none of the container's.
func TestContainerName(t *testing.T) {
	const id = "0411a2a82311fbc65b137ca550d5f7e6b6863bc734759be2f515b0b67062d49a"
	for group, want := range map[string]string{
		id: id, "docker-" + id + ".scope": id, "cri-containerd-" + id + ".scope": id, "kubepods-besteffort-pod1.slice:cri-containerd:" + id: id,
		"libpod-" + id + ".scope": id, "libpod-conmon-" + id + ".scope": "",
		"crio-" + id + ".scope": id, "crio-conmon-" + id + ".scope": "",
	} {
		if got := containerName(group); got != want {
			t.Errorf("%s: got %q, want %q", group, got, want)
		}
	}
}
