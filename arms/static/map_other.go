//go:build !unix

package main

import (
	"io"
	"os"
)

// mapFile reads the file where it cannot be mapped.
func mapFile(f *os.File, size int) (data []byte, unmap func(), err error) {
	data = make([]byte, size)
	_, err = io.ReadFull(f, data)
	return data, func() {}, err
}
