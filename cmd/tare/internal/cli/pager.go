package cli

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

// PrintPaged prints text, through a pager where it is longer than the terminal.
func (t *Terminal) PrintPaged(text string) error {
	if t.Screen != nil && strings.Count(text, "\n") >= t.Lines {
		if pager := findPager(); pager != nil {
			pager.Stdin, pager.Stdout, pager.Stderr = strings.NewReader(text), t.Screen, os.Stderr
			if pager.Start() == nil {
				signal.Ignore(os.Interrupt) // Ctrl-C is the pager's
				_ = pager.Wait()            // what the user thought of the pager is no failure of tare's
				return nil
			}
		}
	}
	_, err := io.WriteString(t.Out, text)
	return err
}

// findPager is the command of $PAGER, or else less; nil if there is none or $PAGER is empty.
func findPager() *exec.Cmd {
	words := []string{"less", "-FRX"}
	if own, is := os.LookupEnv("PAGER"); is {
		words = strings.Fields(own)
	}
	if len(words) == 0 {
		return nil
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil
	}
	pager := exec.Command(words[0], words[1:]...)
	if pager.Env = os.Environ(); os.Getenv("LESS") == "" {
		pager.Env = append(pager.Env, "LESS=FRX") // of a $PAGER that is less, such as for colours
	}
	return pager
}
