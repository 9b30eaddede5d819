package arm

import "testing"

// Whatever a disassembler prints, what is read of it is bounded and whole.
func FuzzListing(f *testing.F) {
	f.Add("TEXT main.open(SB) /x/main.go\n  main.go:63\t\t0x1\t\tffd2\t\tCALL DX\t\n")
	f.Add("TEXT \n\t\t\t\n  a\tb\tc\td\nTEXT a(SB)TEXT b(SB)\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range listing(text) {
			if len(c.Instructions) > mostInstructions {
				t.Errorf("%d instructions are kept of %s", len(c.Instructions), c.Func)
			}
			switch calls := c.Calls(); calls {
			case "direct", "indirect", "direct and indirect", "none":
			default:
				t.Errorf("%s calls %q", c.Func, calls)
			}
		}
	})
}
