package balance

import (
	"math/rand/v2"
	"slices"
)

// enough is which part of the near targets suffices for all requests. It is the default of
// Envoy, an overprovisioning factor of 1.4.
const enough = 1 / 1.4

// Zones are targets of which some are near. It does not change.
type Zones struct {
	near   []int
	enough float64 // which part of them suffices for all requests
}

// NewBackups returns targets of which the others are far, since they are backups: nothing goes to
// these while one of those is healthy. Nil: none is a backup, or all.
func NewBackups(backups []bool) *Zones {
	zones := make([]string, len(backups))
	for i, is := range backups {
		if is {
			zones[i] = "backup"
		}
	}
	z := NewZones("", zones)
	if z != nil {
		z.enough = 1 / float64(len(z.near))
	}
	return z
}

// NewZones returns which of the targets, whose zones these are, are in one's own. Nil:
// none is, or all.
func NewZones(own string, zones []string) *Zones {
	z := &Zones{enough: enough}
	for i, zone := range zones {
		if zone == own {
			z.near = append(z.near, i)
		}
	}
	if len(z.near) == 0 || len(z.near) == len(zones) {
		return nil
	}
	return z
}

// Weights returns the weights for a policy among near targets alone, and for one among the
// others.
func (z *Zones) Weights(weights []int) (near, far []int) {
	near, far = make([]int, len(weights)), slices.Clone(weights)
	for _, i := range z.near {
		near[i], far[i] = weights[i], 0
	}
	return near, far
}

// Stay reports whether this choice is to be a near target: always if enough of them are
// healthy, and else as often as their part allows.
func (z *Zones) Stay(well func(i int) bool) bool {
	n := 0
	for _, i := range z.near {
		if well(i) {
			n++
		}
	}
	part := float64(n) / float64(len(z.near)) / z.enough
	return part >= 1 || rand.Float64() < part
}
