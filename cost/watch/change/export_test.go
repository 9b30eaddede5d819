package change

import "time"

// Blocks are how many profiles each block of a build has, and the margins of their requests.
func Blocks(points []Point, length time.Duration) (profiles []int, margins []float64) {
	for _, s := range segments(points, length) {
		for _, b := range s.blocks {
			profiles = append(profiles, int(b.Window.Duration/points[0].Duration))
			margins = append(margins, b.Window.Margin)
		}
	}
	return profiles, margins
}
