// Package accept reads which encodings a client accepts (RFC 9110, section 12.5.3).
package accept

import "strings"

// longest is how much of Accept-Encoding is read; browsers send 30 bytes.
const longest = 1024

// Encoding returns which of the offers the client prefers, of equals the first; empty:
// none, or the bytes as they are. fields are those of Accept-Encoding.
func Encoding[E ~string](fields []string, offers []E) E {
	var best E
	if len(fields) == 0 {
		return best
	}
	weight := 1 // thousandths; below it is not accepted
	for _, e := range offers {
		if q := weightOf(fields, string(e)); q > weight || q == weight && best == "" {
			best, weight = e, q
		}
	}
	if q := weightIn(fields, "identity"); q > weight {
		return ""
	}
	return best
}

// weightOf returns how much the client likes an encoding, in thousandths, as itself or
// as any other.
func weightOf(fields []string, name string) int {
	if q := weightIn(fields, name); q >= 0 {
		return q
	}
	if name == "gzip" {
		if q := weightIn(fields, "x-gzip"); q >= 0 {
			return q
		}
	}
	return max(weightIn(fields, "*"), 0)
}

// weightIn returns the weight that the fields give to the name; -1: they do not have it.
func weightIn(fields []string, name string) int {
	read := 0
	for _, line := range fields {
		if read += len(line); read > longest {
			return -1
		}
		for element := range strings.SplitSeq(line, ",") {
			coding, parameters, _ := strings.Cut(element, ";")
			if strings.EqualFold(strings.Trim(coding, " \t"), name) {
				return parseWeight(parameters)
			}
		}
	}
	return -1
}

// parseWeight reads q=0.5 as 500. Nothing is 1,000, and what is malformed 0.
func parseWeight(text string) int {
	text = strings.Trim(text, " \t")
	if text == "" {
		return 1000
	}
	value, ok := strings.CutPrefix(strings.ToLower(text), "q=")
	if !ok || value == "" || len(value) > len("0.123") || value[0] > '1' || value[0] < '0' || len(value) > 1 && value[1] != '.' {
		return 0
	}
	q, place := int(value[0]-'0')*1000, 100
	for i := 2; i < len(value); i++ {
		if value[i] < '0' || value[i] > '9' {
			return 0
		}
		q += int(value[i]-'0') * place
		place /= 10
	}
	if q > 1000 {
		return 0
	}
	return q
}
