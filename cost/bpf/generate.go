package bpf

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -tags linux -target amd64,arm64 -cc clang-14 -strip llvm-strip-14 -type sample -type astray -type tally -type program sampler sampler.bpf.c -- -Wall -Werror
