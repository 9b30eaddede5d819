// Package secret masks in command lines what others must not see.
//
// A value is secret by the name before it, as in TOKEN=x and "Authorization: x", or by its place
// in a URL. What no name gives away stays: this is no guard against those who mean harm.
package secret

import (
	"regexp"
	"strings"
)

// words are in the names of settings and of header fields whose values others must not see.
const words = `(?:authorization|x-auth|_auth|cookie|session|token|jwt|secret|credential|signature|passw|pwd|key)`

// flags are the names of flags whose values others must not see. A flag for a key mostly names a
// file.
const flags = `--?[\w-]*(?:token|secret|passw|pwd)[\w-]*`

var (
	flag     = regexp.MustCompile(`(?i)^` + flags + `$`)
	name     = regexp.MustCompile(`(?i)` + words)
	variable = regexp.MustCompile(`^["']?(?:\w+ )?\$\{\w+\}["']?@?$`) // also Bearer ${TOKEN}
	port     = regexp.MustCompile(`^\d{1,5}(?:[/,][\w./,:-]*)?$`)     // of a host whose name looks secret
	host     = regexp.MustCompile(`[\w.-]:$`)
	values   = []*regexp.Regexp{
		regexp.MustCompile(`(?i)((?:^|[^\w/.@-])[\w-]*` + words + `[\w-]*["']?:\s*).*`),   // a header field or a key of JSON, and no host
		regexp.MustCompile(`(?i)(\b\w*` + words + `\w*=)(?:"[^"]*"|'[^']*'|\S+)`),         // a setting, or a parameter of a query
		regexp.MustCompile(`(?i)((?:^|\s)` + flags + `\s+)(?:"[^"]*"|'[^']*'|[^-\s]\S*)`), // a flag with its value
		regexp.MustCompile(`(://[^/@\s:]*:)[^/\s]+(@)`),                                   // a password in a URL
		regexp.MustCompile(`(\b[\w.-]+:)[^/\s]+(@(?:tcp|unix)\()`),                        // or in the address of a MySQL server
	}
)

// Is reports whether the value of a setting or a header field of that name is secret.
func Is(of string) bool { return name.MatchString(of) }

// Mask is a word of a command line without the values of settings, header fields and
// parameters that are secret by their names, and without passwords in URLs. A value that names
// a variable, as ${TOKEN} does, stays.
func Mask(word string) string {
	for _, value := range values {
		word = value.ReplaceAllStringFunc(word, func(found string) string {
			before := value.ReplaceAllString(found, "${1}")
			after := strings.TrimPrefix(found, before)
			if variable.MatchString(after) || host.MatchString(before) && port.MatchString(after) {
				return found
			}
			return value.ReplaceAllString(found, "${1}…${2}")
		})
	}
	return word
}

// MaskAll are the words of a command line, each without its secrets. What follows a flag such as
// --password is one.
func MaskAll(line []string) []string {
	masked := make([]string, len(line))
	for i, word := range line {
		masked[i] = Mask(word)
		if i > 0 && flag.MatchString(line[i-1]) && !strings.HasPrefix(word, "-") && !variable.MatchString(word) {
			masked[i] = "…"
		}
	}
	return masked
}
