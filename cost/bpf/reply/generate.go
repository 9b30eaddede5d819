package reply

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -tags linux -target amd64,arm64 -cc clang-14 -strip llvm-strip-14 watcher reply.bpf.c -- -Wall -Werror
