//go:build !linux

package pclntab

import (
	"errors"
	"os"
)

func mapFile(*os.File, uint64, uint64) ([]byte, uint64, error) { return nil, 0, errors.ErrUnsupported }
func adviseUnneeded([]byte)                                    {}
func unmapFile([]byte) error                                   { return nil }
