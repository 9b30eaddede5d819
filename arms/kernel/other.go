//go:build !linux

package main

import "errors"

// run needs Linux.
func run(options) error { return errors.New("network namespaces need Linux") }
