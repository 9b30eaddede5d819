package probe

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -tags linux -target amd64,arm64 -cc clang-14 -strip llvm-strip-14 device probe.bpf.c -- -Wall -Werror
