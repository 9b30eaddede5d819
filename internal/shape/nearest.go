package shape

import "unicode/utf8"

// Nearest returns the known word that somebody who typed word most likely
// meant, or "" when none is near: the edit distance may be a third of the
// word's length, or 1 in a word of two letters.
func Nearest(word string, known []string) string {
	size := utf8.RuneCountInString(word)
	best, least := "", min(max(1, size/3)+1, size)
	for _, k := range known {
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// Meant asks whether the nearest known word was meant, such as "did you mean rate? ",
// with a space behind it for what follows. It is "" when none is near.
func Meant(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return "did you mean " + near + "? "
	}
	return ""
}

// distance is the number of characters to insert, delete, replace or swap with
// their neighbour to turn a into b (optimal string alignment).
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	rows := make([][]int, len(from)+1)
	for i := range rows {
		rows[i] = make([]int, len(to)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(from); i++ {
		for j := 1; j <= len(to); j++ {
			replace := rows[i-1][j-1]
			if from[i-1] != to[j-1] {
				replace++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replace)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(from)][len(to)]
}
