//go:build !unix

package main

import "errors"

func execute(string, []string, []string) error { return errors.ErrUnsupported }
