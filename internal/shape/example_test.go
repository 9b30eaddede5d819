package shape_test

import (
	"fmt"
	"time"

	"github.com/tarehq/tare/internal/shape"
)

// A file has a name and a length, and one key that nobody knows.
func Example() {
	type file struct {
		name   string
		length time.Duration
	}
	form := shape.Object("the file", []shape.Key[file]{
		shape.Field("name", "What it is called.", shape.Line(), func(f *file) *string { return &f.name }).Must(),
		shape.Field("length", "How long it takes.", shape.Duration(time.Second, time.Hour), func(f *file) *time.Duration { return &f.length }),
	})
	for _, text := range []string{"name: a\nlength: 2s\n", "lenght: 2s\n"} {
		var f file
		r := shape.NewReader("a.yaml", "topics")
		shape.Decode(r, []byte(text), form, &f)
		fmt.Printf("%q %v %v\n", f.name, f.length, r.Err())
	}
	// Output:
	// "a" 2s <nil>
	// "" 0s a.yaml:1:1: the file has no key "lenght"; did you mean length? allowed: name, length
	// a.yaml:1:1: the file lacks the key name: What it is called.
}
