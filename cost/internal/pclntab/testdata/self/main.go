// Command self prints what its own runtime says of its functions: a line an
// address, tabs between address, then function, file and line of each frame. First
// comes its own executable mapping: start and offset.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"reflect"
	"runtime"
	"strings"
)

type kind[T any] struct{ v T }

//go:noinline
func (k kind[T]) show() string { return fmt.Sprint(k.v) }

type shower interface{ show() string }

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	start, end, offset := mapping()
	fmt.Fprintf(out, "%#x\t%#x\n", start, offset)
	if err := json.NewEncoder(os.Stderr).Encode(shower(&kind[int]{1}).show()); err != nil {
		log.Fatal(err)
	}
	last := reflect.ValueOf(main).Pointer()
	var seen uintptr
	for pc, n := start, 0; pc < end; pc, n = pc+13, n+1 {
		f := runtime.FuncForPC(pc)
		if f == nil || f.Entry() == seen && n%8 != 0 {
			continue
		}
		seen = f.Entry()
		fmt.Fprintf(out, "%#x", pc)
		frames := runtime.CallersFrames([]uintptr{pc + 1, last + 1})
		for {
			fr, more := frames.Next()
			if !more {
				break
			}
			fmt.Fprintf(out, "\t%s\t%s\t%d", fr.Function, fr.File, fr.Line)
		}
		fmt.Fprintln(out)
	}
}

// mapping returns the executable mapping of this program.
func mapping() (start, end, offset uintptr) {
	exe, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		log.Fatal(err)
	}
	for _, line := range strings.Split(string(maps), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[5] != exe || fields[1] != "r-xp" {
			continue
		}
		if _, err := fmt.Sscanf(fields[0]+" "+fields[2], "%x-%x %x", &start, &end, &offset); err != nil {
			log.Fatal(err)
		}
		return start, end, offset
	}
	log.Fatal("no executable mapping of ", exe)
	return 0, 0, 0
}
