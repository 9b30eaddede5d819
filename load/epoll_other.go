//go:build !linux

package load

import (
	"context"
	"errors"
	"fmt"
)

const epollWorks = false

func runEpoll(context.Context, *plan) (func(), error) {
	return nil, fmt.Errorf("running event loops: epoll needs Linux: %w", errors.ErrUnsupported)
}
