//go:build unix

package main

import "syscall"

// execute puts another program in this one's place.
func execute(program string, args, env []string) error { return syscall.Exec(program, args, env) }
