package loadverb

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/tarehq/tare/stats/unit"
	"golang.org/x/term"
)

// liveView draws a run over the whole terminal, which shows what it showed
// before when the view ends.
type liveView struct {
	program *tea.Program
	frame   *atomic.Pointer[frame]
	done    chan struct{} // the terminal is as it was
}

// newLiveView begins to draw. Until close the keyboard is the view's.
func newLiveView(t *cli.Terminal, o watcherOptions) *liveView {
	options := []tea.ProgramOption{tea.WithOutput(t.Err), tea.WithoutSignalHandler()}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		options = append(options, tea.WithInput(nil)) // Ctrl-C is a signal then
	}
	v := &liveView{frame: new(atomic.Pointer[frame]), done: make(chan struct{})}
	v.program = tea.NewProgram(screen{options: o, latest: v.frame, width: t.Width, height: 24}, options...)
	go func() {
		defer close(v.done)
		// What keeps the view from being drawn keeps nothing from being
		// measured.
		_, _ = v.program.Run()
	}()
	return v
}

// show leaves a frame to be drawn at the coming tick. It never waits: a
// terminal that hangs must not hold up the load.
func (v *liveView) show(f frame) { v.frame.Store(&f) }

func (v *liveView) say(text string) { v.program.Send(said(text)) }

// end takes the drawing away and restores the terminal, which is done when
// done is closed.
func (v *liveView) end() { v.program.Send(over{}) }

// period of drawing.
const period = 250 * time.Millisecond

// tick is the time to draw, said a line that stays, over the end.
type (
	tick struct{}
	said string
	over struct{}
)

func nextTick() tea.Cmd {
	return tea.Tick(period, func(time.Time) tea.Msg { return tick{} })
}

// screen is what is drawn.
type screen struct {
	options       watcherOptions
	latest        *atomic.Pointer[frame]
	frame         frame
	said          []string
	width, height int
}

// Init begins to draw.
func (s screen) Init() tea.Cmd { return nextTick() }

// Update takes ticks, lines, sizes and keys.
func (s screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tick:
		if f := s.latest.Load(); f != nil {
			s.frame = *f
		}
		return s, nextTick()
	case said:
		s.said = append(s.said, string(m))
	case over:
		return s, tea.Quit
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyPressMsg:
		if k := m.String(); k == "q" || k == "ctrl+c" {
			s.options.Stop(context.Canceled)
		}
	}
	return s, nil
}

// View draws what there is room for.
func (s screen) View() tea.View {
	rows := append(s.head(), "")
	if n := len(s.frame.bins); n > 0 && n+len(rows) < s.height-1 {
		rows = append(append(rows, s.histogram()...), "")
	}
	if room := max(0, s.height-len(rows)-2); len(s.said) > 0 && room > 0 {
		rows = append(append(rows, s.said[max(0, len(s.said)-room):]...), "")
	}
	rows = append(rows, lipgloss.NewStyle().Faint(true).Render("q or Ctrl-C ends early and keeps everything"))
	for i, r := range rows {
		rows[i] = lipgloss.NewStyle().MaxWidth(max(1, s.width)).Render(r)
	}
	v := tea.NewView(strings.Join(rows, "\n"))
	v.AltScreen = true
	return v
}

// head is everything above the histogram.
func (s screen) head() []string {
	f := s.frame
	failed := cmp.Or(failures(f.counts, f.statusAsked), "none")
	if failed != "none" {
		failed = lipgloss.NewStyle().Foreground(lipgloss.Red).Render(failed)
	}
	rows := []string{
		lipgloss.NewStyle().Bold(true).Render(s.options.Title),
		s.bar() + " " + f.when(),
		fmt.Sprintf("%-10s%s, %s in flight", "rate", unit.Format(f.rate, unit.PerSecond), unit.Format(float64(f.flight), unit.Count)),
		fmt.Sprintf("%-10s%s", "answered", f.counts.Status),
		fmt.Sprintf("%-10s%s", "errors", failed),
	}
	return append(rows, s.times()...)
}

// bar shows how far the run is.
func (s screen) bar() string {
	width := min(40, max(8, s.width-26))
	full := int(max(0, s.frame.share) * float64(width))
	return strings.Repeat("█", full) + lipgloss.NewStyle().Faint(true).Render(strings.Repeat("░", width-full))
}

// times are the quantiles, in as many rows as the width asks for.
func (s screen) times() []string {
	var rows []string
	row := fmt.Sprintf("%-10s", s.frame.label)
	for _, q := range s.frame.quantiles {
		cell := q.name + " " + nanoseconds(q.value) + "  "
		if lipgloss.Width(row+cell) > s.width {
			rows = append(rows, row)
			row = strings.Repeat(" ", 10)
		}
		row += cell
	}
	return append(rows, row)
}

// histogram has a row a bin.
func (s screen) histogram() []string {
	var most float64
	for _, b := range s.frame.bins {
		most = max(most, b.share)
	}
	width := min(50, max(4, s.width-26))
	var rows []string
	for _, b := range s.frame.bins {
		length := int(b.share / max(most, 1e-9) * float64(width))
		share := fmt.Sprintf("%5.1f %%", 100*b.share)
		rows = append(rows, fmt.Sprintf("≤ %8s %s %s", nanoseconds(b.upTo), share, strings.Repeat("█", length)))
	}
	return rows
}
