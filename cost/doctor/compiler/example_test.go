package compiler_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tarehq/tare/cost/doctor/compiler"
)

func ExampleAsk() {
	dir, err := os.MkdirTemp("", "compiler")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"go.mod":  "module example.org/shop\n\ngo 1.26\n",
		"main.go": "package main\n\nvar kept *int\n\nfunc main() {\n\tn := 7\n\tkept = &n\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			fmt.Println(err)
			return
		}
	}
	decisions, err := compiler.Ask(context.Background(), dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range decisions {
		fmt.Printf("%s:%d: %s: %s\n", filepath.Base(d.File), d.Line, d.Kind, d.Text)
	}
	// Output: main.go:6: escape: moved to heap: n
}
