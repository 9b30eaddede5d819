package chart

import (
	"math"
	"strconv"
)

// path is the data of an SVG path, to a tenth of a unit.
type path struct {
	b    []byte
	down bool // the pen is
}

// to draws to a point, or begins there.
func (p *path) to(x, y float64) {
	c := byte('L')
	if !p.down {
		c, p.down = 'M', true
	}
	p.b = append(p.b, c)
	p.number(x)
	p.b = append(p.b, ' ')
	p.number(y)
}

func (p *path) number(v float64) {
	p.b = strconv.AppendFloat(p.b, math.Round(v*10)/10, 'f', -1, 64)
}

// up lifts the pen: the next point begins a new line.
func (p *path) up() { p.down = false }

// dot is a line of no length, which round caps make a dot of the stroke's
// width.
func (p *path) dot(x, y float64) {
	p.up()
	p.to(x, y)
	p.b = append(p.b, "h0"...)
	p.up()
}

func (p *path) String() string { return string(p.b) }
