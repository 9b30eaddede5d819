package cli

import (
	"regexp"
	"strings"
)

// secretWords are in the names of settings and of header fields whose values others must not see.
const secretWords = `(?:authorization|x-auth|_auth|cookie|session|token|jwt|secret|credential|signature|passw|pwd|key)`

// secretFlags are in the names of flags whose values others must not see. A flag for a key mostly
// names a file.
const secretFlags = `--?[\w-]*(?:token|secret|passw|pwd)[\w-]*`

var (
	secretFlag   = regexp.MustCompile(`(?i)^` + secretFlags + `$`)
	secretName   = regexp.MustCompile(`(?i)` + secretWords)
	secretValues = []*regexp.Regexp{
		regexp.MustCompile(`(?i)((?:^|[^\w/.@-])[\w-]*` + secretWords + `[\w-]*["']?:\s*).*`),   // a header field or a key of JSON, and no host
		regexp.MustCompile(`(?i)(\b\w*` + secretWords + `\w*=)(?:"[^"]*"|'[^']*'|\S+)`),         // a setting, or a parameter of a query
		regexp.MustCompile(`(?i)((?:^|\s)` + secretFlags + `\s+)(?:"[^"]*"|'[^']*'|[^-\s]\S*)`), // a flag with its value
		regexp.MustCompile(`(://[^/@\s:]*:)[^/\s]+(@)`),                                         // a password in a URL
		regexp.MustCompile(`(\b[\w.-]+:)[^/\s]+(@(?:tcp|unix)\()`),                              // or in the address of a MySQL server
	}
)

// IsSecret reports whether the value of a setting or a header field of that name is secret.
func IsSecret(name string) bool { return secretName.MatchString(name) }

// MaskSecrets is a word of a command line without the values of settings, header fields and
// parameters that are secret by their names, and without passwords in URLs.
func MaskSecrets(word string) string {
	for _, value := range secretValues {
		word = value.ReplaceAllString(word, "${1}…${2}")
	}
	return word
}

// MaskWords are the words of a command line, each without its secrets. What follows a flag such as
// --password is one.
func MaskWords(words []string) []string {
	masked := make([]string, len(words))
	for i, word := range words {
		masked[i] = MaskSecrets(word)
		if i > 0 && secretFlag.MatchString(words[i-1]) && !strings.HasPrefix(word, "-") {
			masked[i] = "…"
		}
	}
	return masked
}
