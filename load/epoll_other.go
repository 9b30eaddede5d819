//go:build !linux

package load

import (
	"errors"
	"fmt"
)

const epollWorks = false

func runEpoll(*plan) (func(), error) {
	return nil, fmt.Errorf("running event loops: epoll needs Linux: %w", errors.ErrUnsupported)
}
