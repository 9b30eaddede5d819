//go:build !unix

package proxyverb

import "os"

func restartSignals() []os.Signal { return nil }
