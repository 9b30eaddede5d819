package cost

import "github.com/tarehq/tare/cost/internal/symbol"

// Standard reports whether the frame's function is the standard library's, or nobody's,
// as of assembly, the kernel and what the compiler makes.
func (f Frame) Standard() bool { return symbol.Standard(symbol.Package(f.Func)) }

// Package is the import path of the function's package; of a literal the folder of its
// file, where that does not show the path.
func (f Frame) Package() string { return symbol.PackageIn(f.Func, f.File) }

// Name names the frame's function for people. A function literal goes by the
// function that it is written in: the linker's name of it begins with the function
// into which that was inlined.
func (f Frame) Name() string { return symbol.Name(f.Func, f.File) }

// FuncName names a frame's function so that the same function of another build
// has the same name: a literal goes by the function that it is written in.
func FuncName(f Frame) string { return symbol.Identity(f.Func, f.File) }
