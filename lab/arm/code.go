package arm

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// Code is the machine code of one function.
type Code struct {
	Func         string        `json:"func"` // as the linker names it
	Instructions []Instruction `json:"instructions"`
}

// Instruction is one instruction of a function.
type Instruction struct {
	At   string `json:"at"`   // file:line that it was made for, without directories
	Text string `json:"text"` // in the syntax of Go's assembler
}

// mostInstructions is how many instructions of a function are kept: those that
// people read are short.
const mostInstructions = 400

// Disassemble reads the machine code of functions out of a Go program by the go
// command's own disassembler, in the order in which they lie there. A function
// that the program does not hold, such as one inlined wherever it is called, is
// left out.
func Disassemble(ctx context.Context, path string, funcs []string) ([]Code, error) {
	quoted := make([]string, len(funcs))
	for i, f := range funcs {
		quoted[i] = regexp.QuoteMeta(f)
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "objdump", "-s", "^("+strings.Join(quoted, "|")+")$", path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("disassembling: %w", ctx.Err())
	}
	if err != nil {
		return nil, fmt.Errorf("disassembling: %w:\n%s", err, firstLines(stderr.String(), outputLines))
	}
	return listing(string(out)), nil
}

// listing reads what objdump prints: a line TEXT for each function, then a line
// for each instruction with file:line, address, bytes and text between tabs.
func listing(text string) []Code {
	var all []Code
	for line := range strings.Lines(text) {
		if head, ok := strings.CutPrefix(line, "TEXT "); ok {
			name, _, _ := strings.Cut(head, "(SB)")
			all = append(all, Code{Func: name})
			continue
		}
		fields := strings.FieldsFunc(line, func(r rune) bool { return r == '\t' || r == '\n' })
		if len(all) == 0 || len(fields) < 4 {
			continue
		}
		c := &all[len(all)-1]
		if len(c.Instructions) < mostInstructions {
			c.Instructions = append(c.Instructions, Instruction{strings.TrimSpace(fields[0]), strings.TrimSpace(fields[3])})
		}
	}
	return all
}

// Calls says how the function calls others: "direct" where every call names its
// callee, "indirect" where all go through a pointer, "direct and indirect", or
// "none". What the compiler adds, calls of the runtime, does not count.
func (c *Code) Calls() string {
	var direct, indirect bool
	for _, i := range c.Instructions {
		if !i.Calls() {
			continue
		}
		if i.callee() == "" {
			indirect = true
		} else {
			direct = true
		}
	}
	switch {
	case direct && indirect:
		return "direct and indirect"
	case direct:
		return "direct"
	case indirect:
		return "indirect"
	}
	return "none"
}

// Calls reports whether the instruction is a call that the source asks for, not one
// of the runtime's that the compiler adds.
func (i Instruction) Calls() bool {
	return strings.HasPrefix(i.Text, "CALL ") && !strings.HasPrefix(i.callee(), "runtime.")
}

// callee is the function that a call names, "" if it goes through a pointer.
func (i Instruction) callee() string {
	name, _, named := strings.Cut(strings.TrimPrefix(i.Text, "CALL "), "(SB)")
	if !named {
		return ""
	}
	return name
}
