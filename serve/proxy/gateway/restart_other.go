//go:build !unix

package main

import "os"

func restartSignal() <-chan os.Signal { return nil }
