package stats

import "math"

// LittleTolerance is the relative error by Little's law beyond which a trial
// is invalid: requests were lost, or times taken wrongly.
const LittleTolerance = 0.10

// Little is the relative error |N − X·R| / N by which measurements of one
// trial contradict Little's law: the mean number in flight N, measured apart,
// the throughput X in requests a second, and the mean response time R in
// seconds. It is 0 where all is 0 and +Inf where only N is.
//
// Source: Little, A proof for the queuing formula L = λW, 1961.
func Little(meanInFlight, throughput, meanResponseSeconds float64) (relativeError float64) {
	gap := math.Abs(meanInFlight - throughput*meanResponseSeconds)
	if gap == 0 {
		return 0
	}
	return gap / math.Abs(meanInFlight)
}
