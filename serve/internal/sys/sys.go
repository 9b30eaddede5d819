// Package sys holds the system calls and views of memory that the engine needs
// and the standard library does not offer.
//
// It is the only package of serve that uses unsafe. What it offers is thin: a
// call is made once, answers what the kernel answered, and keeps nothing.
package sys

import "unsafe"

// String returns a string that shares b's memory. The caller must not change b
// while the string is in use.
func String(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Bytes returns the bytes of s, which must not be changed.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
